/* SPDX-License-Identifier: MIT
 *
 * One-sided plans of exchanges on the host, for every instruction set of this processor. For each
 * place of a plan, the record is compared with the definition of a shuffle, and the order of the
 * lists with the definition of the plan.
 */
#include "support/cmocka_all.h"
#include "support/random.h"

#include "host/exchange.h"
#include "shuf/primefold.h"

#include <inttypes.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 64, UNIT = SHUF__PART_UNIT };

static const struct shuf__simd_ops *simd;

static struct shuf__computation computation_of(const struct shuf__plan *plan)
{
    struct shuf__error error;
    struct shuf__computation c = {.request = {.plan = *plan}};
    if (shuf__exchange_make(&c.request, &error))
        fail_msg("%s", error.text);
    assert_int_equal(c.request.dtype, SHUF_U32);
    return c;
}

/* Computes a plan, and checks that nothing is written beside the result and the workspace. */
static uint32_t *compute(const struct shuf__plan *plan, int threads)
{
    struct shuf__computation c = computation_of(plan);
    const struct shuf__shape shape = shuf__request_shape(&c.request);
    const uint64_t needed = shuf__exchange_bytes(threads, plan);
    uint8_t *out = malloc(shape.bytes + GUARD), *beside = malloc(needed + GUARD);
    const struct shuf__block workspace = {.memory = beside, .bytes = needed};
    assert_true(out && beside);
    memset(out, 0xa5, shape.bytes + GUARD);
    memset(beside, 0x5a, needed + GUARD);
    c.workspace = &workspace;
    assert_true(shuf__host_exchange(simd, threads, &c, out));
    for (int i = 0; i < GUARD; i++)
        assert_true(out[shape.bytes + (size_t)i] == 0xa5 && beside[needed + (size_t)i] == 0x5a);
    free(beside);
    return (uint32_t *)(void *)out;
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
    uint32_t *out = compute(plan, threads);
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
    struct shuf__plan plan = plan_of(UINT64_C(1) << 30, 0, 4, false);
    assert_int_equal(shuf__plan_windows(&plan).bits, 21);
    assert_int_equal(shuf__plan_windows(&plan).count, 512);
    plan.permutation.n++;
    assert_int_equal(shuf__plan_windows(&plan).bits, 22);
    assert_int_equal(shuf__plan_windows(&plan).count, 257);
    plan = plan_of(UINT64_C(1) << 38, 0, 64, false);
    assert_int_equal(shuf__plan_windows(&plan).bits, 29);
    assert_int_equal(shuf__plan_windows(&plan).count, 512);
    plan = plan_of(1, 0, 64, false);
    assert_int_equal(shuf__plan_windows(&plan).count, 1);
}

struct cancel_after {
    unsigned calls, limit;
};

static bool at_last(void *context)
{
    struct cancel_after *cancel_after = context; /* called by any thread */
    return __atomic_add_fetch(&cancel_after->calls, 1, __ATOMIC_RELAXED) >= cancel_after->limit;
}

/* Each call of `cancelled`, from the first to the last, ends the computation soon. */
static void cancelled(void **state)
{
    (void)state;
    struct cancel_after cancel_after = {.limit = UINT32_MAX};
    random_start("cancelled");
    struct shuf__plan plan = plan_of(600000, 0, 2, false);
    plan.part = UNIT;
    struct shuf__computation c = computation_of(&plan);
    struct shuf__block workspace = {.bytes = shuf__exchange_bytes(2, &plan)};
    void *out = malloc(shuf__request_shape(&c.request).bytes);
    workspace.memory = malloc(workspace.bytes);
    c.workspace = &workspace;
    c.cancelled = at_last;
    c.cancel_context = &cancel_after;
    assert_true(shuf__host_exchange(simd, 2, &c, out));
    const unsigned all = cancel_after.calls;
    assert_true(all > 100);
    for (unsigned limit = 1; limit <= all; limit += 13) {
        cancel_after = (struct cancel_after){.limit = limit};
        assert_false(shuf__host_exchange(simd, 2, &c, out));
        assert_in_range(cancel_after.calls, limit, limit + 10);
    }
    free(workspace.memory);
    free(out);
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

static int run(const char *name)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(edges),         cmocka_unit_test(uneven),  cmocka_unit_test(large_n),
        cmocka_unit_test(fewer_threads), cmocka_unit_test(windows), cmocka_unit_test(cancelled),
        cmocka_unit_test(memory),
    };
    struct shuf__error error;
    if (shuf__simd_choose(name, &simd, &error)) {
        fprintf(stderr, "%s\n", error.text);
        return error.status == SHUF_DEVICE ? 0 : 1; /* this processor lacks the instructions */
    }
    return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

int main(void)
{
    return run("scalar") + run("avx2") + run("avx512");
}
