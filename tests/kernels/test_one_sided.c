/* SPDX-License-Identifier: MIT
 *
 * One-sided plans of exchanges on the host, for every instruction set of this processor. For each
 * place of a plan, the record is compared with the definition of a shuffle, and the order of the
 * lists with the definition of the plan.
 */
#include "support/host_plans.h"
#include "support/random.h"

#include "shuf/primefold.h"

#include <inttypes.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { UNIT = SHUF__PART_UNIT };

static struct shuf__computation computation_of(const struct shuf__plan *plan)
{
    const struct shuf__computation c = host_plan_computation(plan);
    assert_int_equal(c.request.dtype, SHUF_U32);
    return c;
}

/* The window of a record, as docs/cluster.md defines it. */
static uint64_t window_of(const struct shuf__plan *plan, unsigned bits, uint64_t position)
{
    uint64_t window = 0;
    for (uint64_t r = 0;; r++) {
        const struct shuf__range part = shuf__plan_part(plan, r, false);
        if (position >= part.first && position - part.first < part.count)
            return window + ((position - part.first) >> bits);
        window += (part.count >> bits) + (part.count % (UINT64_C(1) << bits) != 0);
    }
}

static uint64_t first_of(const struct shuf__plan *plan, uint64_t position)
{
    for (uint64_t r = 0;; r++) {
        const struct shuf__range part = shuf__plan_part(plan, r, false);
        if (position >= part.first && position - part.first < part.count)
            return part.first;
    }
}

static void check_part(const struct shuf__plan *plan, const shuf_primefold *f, uint64_t first,
                       uint64_t count, const uint32_t *begins, const uint32_t *numbers,
                       const uint32_t *indices)
{
    const struct shuf__windows windows = shuf__plan_windows(plan);
    const struct shuf__range out = shuf__plan_part(plan, plan->rank, true);
    uint32_t *next = malloc((windows.count + 1) * sizeof *next);
    memcpy(next, begins, (windows.count + 1) * sizeof *next);
    assert_int_equal(begins[0], 0);
    assert_int_equal(begins[windows.count], count);
    for (uint64_t k = 0; k < count; k++) {
        const uint64_t place = out.first + first + k;
        const uint64_t source =
            plan->inverse ? shuf_primefold_inverse(f, place) : shuf_primefold_forward(f, place);
        const uint64_t window = window_of(plan, windows.bits, source);
        if (indices[k] != next[window] || numbers[indices[k]] != source - first_of(plan, source))
            fail_msg("%s n %" PRIu64 " seed %" PRIu64 " rank %" PRIu64 " of %" PRIu64
                     " inverse %d: place %" PRIu64 " has index %" PRIu32 ", expected %" PRIu32
                     ", and the record of position %" PRIu64,
                     simd->name, plan->permutation.n, plan->permutation.seed, plan->rank,
                     plan->world, plan->inverse, first + k, indices[k], next[window], source);
        next[window]++;
    }
    for (uint64_t w = 0; w < windows.count; w++)
        assert_int_equal(next[w], begins[w + 1]);
    free(next);
}

static void check_plan(const struct shuf__plan *plan, int threads)
{
    const struct shuf__permutation *p = &plan->permutation;
    const uint64_t windows = shuf__plan_windows(plan).count, parts = shuf__plan_parts(plan);
    const uint64_t places = shuf__plan_part(plan, plan->rank, true).count;
    shuf_primefold f = shuf_primefold_make_keyed(p->n, shuf__permutation_key(p), p->epoch);
    uint32_t *out = host_plan_compute(computation_of(plan), threads);
    const uint32_t *numbers = out + parts * (windows + 1), *indices = numbers + places;
    shuf_primefold_make_inverse(&f);
    for (uint64_t i = 0; i < parts; i++) {
        const uint64_t first = i * plan->part, rest = places - first;
        check_part(plan, &f, first, rest < plan->part ? rest : plan->part, out + i * (windows + 1),
                   numbers + first, indices + first);
    }
    free(out);
}

static struct shuf__plan plan_of(uint64_t n, uint64_t rank, uint64_t world, bool inverse)
{
    return (struct shuf__plan){
        .permutation = {.n = n, .seed = n ^ random_u64(), .epoch = random_below(9)},
        .rank = rank,
        .world = world,
        .inverse = inverse,
        .part = UNIT * (1 + random_below(3))};
}

static void edges(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {1, 2, 7, 255, 256, 257, 4097, 65536, 65537, 131072, 200003};
    static const uint64_t worlds[] = {1, 2, 3, 8, SHUF__RANKS_ONE_SIDED};
    random_start("edges");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t k = 0; k < sizeof worlds / sizeof *worlds; k++)
            for (int inverse = 0; inverse < 2; inverse++) {
                const struct shuf__plan plan =
                    plan_of(sizes[i], random_below(worlds[k]), worlds[k], inverse);
                check_plan(&plan, 1 + inverse);
            }
}

static void uneven(void **state)
{
    (void)state;
    random_start("uneven");
    for (int i = 0; i < 60; i++) {
        uint64_t input[SHUF__RANKS_ONE_SIDED], output[SHUF__RANKS_ONE_SIDED];
        const uint64_t world = 1 + random_below(SHUF__RANKS_ONE_SIDED);
        struct shuf__plan plan =
            plan_of(random_size(400000), random_below(world), world, random_below(2));
        random_sizes(plan.permutation.n, plan.world, input);
        random_sizes(plan.permutation.n, plan.world, output);
        plan.input = i % 4 ? input : NULL;
        plan.output = i % 4 != 1 ? output : NULL;
        check_plan(&plan, 1 + (int)random_below(4));
    }
}

/* Ranks of several windows. Values of 32 and of 64 bits. The checked rank gets few records. */
static void large_n(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {UINT64_C(5) << 20, UINT64_C(3) << 26, UINT64_C(1) << 32,
                                     (UINT64_C(1) << 34) - 77};
    random_start("large_n");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int inverse = 0; inverse < 2; inverse++) {
            const uint64_t n = sizes[i], few = 70000;
            const uint64_t most = n < SHUF__ONE_SIDED_MOST ? n : SHUF__ONE_SIDED_MOST;
            const uint64_t input[] = {most / 3,
                                      0,
                                      most - most / 3,
                                      (n - most) / 3,
                                      (n - most) / 3,
                                      n - most - (n - most) / 3 * 2,
                                      0};
            const uint64_t output[] = {n - few - 1, 1, few, 0, 0, 0, 0};
            struct shuf__plan plan = plan_of(n, 2, 7, inverse);
            plan.input = input;
            plan.output = output;
            check_plan(&plan, 2);
        }
}

/* OpenMP may start fewer threads than a computation asks for, as with OMP_THREAD_LIMIT=1. */
static void fewer_threads(void **state)
{
    (void)state;
    const int levels = omp_get_max_active_levels();
    random_start("fewer_threads");
    const struct shuf__plan plan = plan_of(300000, 1, 2, false);
    omp_set_max_active_levels(0); /* one thread */
    check_plan(&plan, 4);
    omp_set_max_active_levels(levels);
}

/* As many windows as possible: they have 2^21 records as long as their number permits this. */
static void windows(void **state)
{
    (void)state;
    struct shuf__plan plan = plan_of(UINT64_C(1) << 29, 0, 4, false);
    assert_int_equal(shuf__plan_windows(&plan).bits, 21);
    assert_int_equal(shuf__plan_windows(&plan).count, 256);
    plan.permutation.n++;
    assert_int_equal(shuf__plan_windows(&plan).bits, 22);
    assert_int_equal(shuf__plan_windows(&plan).count, 129);
    plan = plan_of(UINT64_C(1) << 38, 0, 64, false);
    assert_int_equal(shuf__plan_windows(&plan).bits, 30);
    assert_int_equal(shuf__plan_windows(&plan).count, 256);
    plan = plan_of(1, 0, 64, false);
    assert_int_equal(shuf__plan_windows(&plan).count, 1);
}

static void cancelled(void **state)
{
    (void)state;
    random_start("cancelled");
    struct shuf__plan plan = plan_of(600000, 0, 2, false);
    plan.part = UNIT;
    host_plan_check_cancel(computation_of(&plan));
}

/* A plan takes 8 bytes for each record of the rank, and counters. */
static void memory(void **state)
{
    (void)state;
    const struct shuf__plan plan = {
        .permutation = {.n = UINT64_C(1) << 30}, .world = 4, .part = UINT64_C(1) << 26};
    const struct shuf__computation c = computation_of(&plan);
    const uint64_t bytes =
        shuf__request_shape(&c.request).bytes + shuf__exchange_bytes(16, &c.request.plan);
    assert_in_range(bytes, UINT64_C(8) << 28, (UINT64_C(8) << 28) + (1 << 20));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(edges),         cmocka_unit_test(uneven),  cmocka_unit_test(large_n),
        cmocka_unit_test(fewer_threads), cmocka_unit_test(windows), cmocka_unit_test(cancelled),
        cmocka_unit_test(memory),
    };
    return HOST_PLAN_RUN("scalar", tests) + HOST_PLAN_RUN("avx2", tests) +
           HOST_PLAN_RUN("avx512", tests);
}
