/* SPDX-License-Identifier: MIT
 *
 * Plans of exchanges on the host, for every instruction set of this processor. All plans of a world
 * are carried out on numbered records, and the outputs are compared with the definition of a
 * shuffle. A world that is too large for that is checked rank by rank, by look-ups. For each place
 * of a one-sided plan, the record is compared with the definition of a shuffle, and the order of
 * the lists with the definition of the plan.
 */
#include "host/exchange.h"
#include "shuf/primefold.h"
#include "support/cmocka_all.h"
#include "support/random.h"

#include <inttypes.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORLD_MOST = 24, N_MOST = 40000, GUARD = 64 };

/* ---- Any plan ---- */

static const struct shuf__simd_ops *simd; /* of the present run */

static struct shuf__computation plan_computation(const struct shuf__plan *plan)
{
    struct shuf__error error;
    struct shuf__computation c = {.request = {.plan = *plan}};
    if (shuf__exchange_make(&c.request, &error))
        fail_msg("%s", error.text);
    return c;
}

/* Computes a plan, and checks that nothing is written beside the result and the workspace. */
static void *compute_plan(struct shuf__computation c, int threads)
{
    const uint64_t bytes = shuf__request_shape(&c.request).bytes;
    const uint64_t needed = shuf__exchange_bytes(threads, &c.request.plan);
    uint8_t *out = malloc(bytes + GUARD), *beside = malloc(needed + GUARD);
    const struct shuf__block workspace = {.memory = beside, .bytes = needed};
    assert_true(out && beside);
    memset(out, 0xa5, bytes + GUARD);
    memset(beside, 0x5a, needed + GUARD);
    c.workspace = &workspace;
    assert_true(shuf__host_exchange(simd, threads, &c, out));
    for (int i = 0; i < GUARD; i++)
        assert_true(out[bytes + (size_t)i] == 0xa5 && beside[needed + (size_t)i] == 0x5a);
    free(beside);
    return out;
}

struct cancel {
    unsigned calls, limit;
};

static bool is_last_call(void *context)
{
    struct cancel *cancel = context; /* called by any thread */
    return __atomic_add_fetch(&cancel->calls, 1, __ATOMIC_RELAXED) >= cancel->limit;
}

/* Each call of `cancelled`, from the first to the last, ends the computation soon. */
static void check_cancel(struct shuf__computation c)
{
    struct cancel cancel = {.limit = UINT32_MAX};
    struct shuf__block workspace = {.bytes = shuf__exchange_bytes(2, &c.request.plan)};
    void *out = malloc(shuf__request_shape(&c.request).bytes);
    workspace.memory = malloc(workspace.bytes);
    c.workspace = &workspace;
    c.cancelled = is_last_call;
    c.cancel_context = &cancel;
    assert_true(shuf__host_exchange(simd, 2, &c, out));
    const unsigned all = cancel.calls;
    assert_true(all > 100);
    for (unsigned limit = 1; limit <= all; limit += 13) {
        cancel = (struct cancel){.limit = limit};
        assert_false(shuf__host_exchange(simd, 2, &c, out));
        assert_in_range(cancel.calls, limit, limit + 10);
    }
    free(workspace.memory);
    free(out);
}

/* ---- One plan of both sides ---- */

struct numbers {
    uint64_t *to, *from, *order, *places;
    uint64_t *memory;
};

static uint64_t read_number(const void *values, unsigned width, uint64_t index)
{
    return width == 4 ? ((const uint32_t *)values)[index] : ((const uint64_t *)values)[index];
}

static struct shuf__computation computation_of(const struct shuf__plan *plan, shuf_dtype dtype)
{
    struct shuf__computation c = plan_computation(plan);
    if (dtype != SHUF_AUTO)
        c.request.dtype = dtype;
    return c;
}

static struct numbers compute(const struct shuf__plan *plan, int threads, shuf_dtype dtype)
{
    const struct shuf__computation c = computation_of(plan, dtype);
    const struct shuf__shape shape = shuf__request_shape(&c.request);
    struct numbers n = {.memory = malloc((shape.count + 1) * sizeof(uint64_t))};
    void *out = compute_plan(c, threads);
    assert_non_null(n.memory);
    for (uint64_t i = 0; i < shape.count; i++)
        n.memory[i] = read_number(out, (unsigned)shape.width, i);
    n.to = n.memory;
    n.from = n.to + plan->world;
    n.order = n.from + plan->world;
    n.places = n.order + shuf__plan_part(plan, plan->rank, false).count;
    free(out);
    return n;
}

/* ---- All plans of a world ---- */

struct world {
    struct shuf__plan plan; /* of rank 0 */
    struct numbers of[WORLD_MOST];
};

static uint64_t sum_before(const uint64_t *counts, uint64_t end)
{
    uint64_t sum = 0;
    for (uint64_t r = 0; r < end; r++)
        sum += counts[r];
    return sum;
}

/* Sends the records from rank s to rank d. A record is its position in the input. */
static void send(const struct world *w, uint64_t s, uint64_t d, uint64_t *output)
{
    const struct numbers *from = &w->of[s], *to = &w->of[d];
    const struct shuf__range in = shuf__plan_part(&w->plan, s, false);
    const struct shuf__range out = shuf__plan_part(&w->plan, d, true);
    const uint64_t leaves = sum_before(from->to, d), arrives = sum_before(to->from, s);
    assert_int_equal(from->to[d], to->from[s]);
    for (uint64_t k = 0; k < from->to[d]; k++) {
        const uint64_t record = from->order[leaves + k], place = to->places[arrives + k];
        assert_true(record < in.count && place < out.count);
        assert_int_equal(output[out.first + place], UINT64_MAX);
        output[out.first + place] = in.first + record;
    }
}

static void check_world(const struct shuf__plan *plan, int threads, shuf_dtype dtype)
{
    const struct shuf__permutation *p = &plan->permutation;
    const shuf_key key = shuf__permutation_key(p);
    shuf_primefold f = shuf_primefold_make_keyed(p->n, key, p->epoch);
    struct world w = {.plan = *plan};
    uint64_t *output = malloc(p->n * sizeof *output);
    memset(output, 0xff, p->n * sizeof *output);
    shuf_primefold_make_inverse(&f);
    for (uint64_t r = 0; r < plan->world; r++) {
        w.plan.rank = r;
        w.of[r] = compute(&w.plan, threads, dtype);
    }
    for (uint64_t s = 0; s < plan->world; s++)
        for (uint64_t d = 0; d < plan->world; d++)
            send(&w, s, d, output);
    for (uint64_t i = 0; i < p->n; i++) {
        const uint64_t source =
            plan->inverse ? shuf_primefold_inverse(&f, i) : shuf_primefold_forward(&f, i);
        if (output[i] != source)
            fail_msg("%s n %" PRIu64 " seed %" PRIu64 " world %" PRIu64 " inverse %d by %d threads:"
                     " record %" PRIu64 " is %" PRIu64 ", expected %" PRIu64,
                     simd->name, p->n, p->seed, plan->world, plan->inverse, threads, i, output[i],
                     source);
    }
    for (uint64_t r = 0; r < plan->world; r++)
        free(w.of[r].memory);
    free(output);
}

static struct shuf__plan plan_of(uint64_t n, uint64_t world, bool inverse)
{
    return (struct shuf__plan){
        .permutation = {.n = n, .seed = n ^ random_u64(), .epoch = random_below(9)},
        .world = world,
        .inverse = inverse};
}

static void edges(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {1, 2, 3, 7, 255, 256, 257, 2047, 4096, 4097, 10007};
    static const uint64_t worlds[] = {1, 2, 3, 8, WORLD_MOST};
    random_start("edges");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t k = 0; k < sizeof worlds / sizeof *worlds; k++)
            for (int inverse = 0; inverse < 2; inverse++) {
                const struct shuf__plan plan = plan_of(sizes[i], worlds[k], inverse);
                check_world(&plan, 1 + inverse, SHUF_AUTO);
            }
}

static void uneven(void **state)
{
    (void)state;
    random_start("uneven");
    for (int i = 0; i < 60; i++) {
        uint64_t input[WORLD_MOST], output[WORLD_MOST];
        struct shuf__plan plan =
            plan_of(random_size(N_MOST), 1 + random_below(WORLD_MOST), random_below(2));
        random_sizes(plan.permutation.n, plan.world, input);
        random_sizes(plan.permutation.n, plan.world, output);
        plan.input = i % 4 ? input : NULL;
        plan.output = i % 4 != 1 ? output : NULL;
        check_world(&plan, 1 + (int)random_below(4), i % 3 ? SHUF_AUTO : SHUF_U64);
    }
}

/* Large enough for several windows, and for several threads. */
static void many_windows(void **state)
{
    (void)state;
    random_start("many_windows");
    for (int inverse = 0; inverse < 2; inverse++) {
        const struct shuf__plan plan = plan_of(700001, 3, inverse);
        check_world(&plan, 3, SHUF_AUTO);
    }
}

/* ---- One rank of a large world ---- */

/* Where the part of each rank begins; at the end n. The caller frees it. */
static uint64_t *begins_of(const struct shuf__plan *plan, bool output)
{
    uint64_t *begins = malloc((plan->world + 1) * sizeof *begins);
    const uint64_t *sizes = output ? plan->output : plan->input;
    assert_non_null(begins);
    begins[0] = 0;
    for (uint64_t r = 0; r < plan->world; r++)
        begins[r + 1] =
            begins[r] +
            (sizes ? sizes[r] : shuf__equal_part(plan->permutation.n, plan->world, r).count);
    assert_int_equal(begins[plan->world], plan->permutation.n);
    return begins;
}

/* The rank whose part contains the position. Ranks may be empty. */
static uint64_t rank_at(const uint64_t *begins, uint64_t world, uint64_t position)
{
    uint64_t low = 0, high = world; /* begins[low] <= position < begins[high] */
    while (high - low > 1) {
        const uint64_t middle = low + (high - low) / 2;
        *(begins[middle] <= position ? &low : &high) = middle;
    }
    return low;
}

/* The counts divide a list into one part for each rank. The numbers of a part are in order and
 * belong to its rank. */
static void check_list(const struct shuf__plan *plan, const shuf_primefold *f, bool sends,
                       const uint64_t *counts, const uint64_t *list)
{
    const struct shuf__range own = shuf__plan_part(plan, plan->rank, !sends);
    uint64_t *begins = begins_of(plan, sends);
    uint8_t *seen = calloc(own.count + 1, 1);
    uint64_t k = 0;
    for (uint64_t r = 0; r < plan->world; r++) {
        uint64_t before = 0;
        for (uint64_t end = k + counts[r], first = k; k < end; k++) {
            assert_true(list[k] < own.count && !seen[list[k]]++);
            const uint64_t there = sends != plan->inverse
                                       ? shuf_primefold_inverse(f, own.first + list[k])
                                       : shuf_primefold_forward(f, own.first + list[k]);
            assert_int_equal(rank_at(begins, plan->world, there), r);
            const uint64_t key = sends ? there : list[k];
            assert_true(k == first || key > before);
            before = key;
        }
    }
    assert_int_equal(k, own.count);
    free(seen);
    free(begins);
}

static void check_rank(uint64_t n, uint64_t world, uint64_t rank, bool inverse,
                       const uint64_t *sizes)
{
    struct shuf__plan plan = plan_of(n, world, inverse);
    const struct shuf__permutation *p = &plan.permutation;
    shuf_primefold f = shuf_primefold_make_keyed(n, shuf__permutation_key(p), p->epoch);
    shuf_primefold_make_inverse(&f);
    plan.rank = rank;
    plan.input = plan.output = sizes;
    struct numbers numbers = compute(&plan, 2, SHUF_AUTO);
    check_list(&plan, &f, true, numbers.to, numbers.order);
    check_list(&plan, &f, false, numbers.from, numbers.places);
    free(numbers.memory);
}

/* Positions of 32 and of 64 bits, up to 2^62. The checked rank has few records. */
static void large_n(void **state)
{
    (void)state;
    random_start("large_n");
    for (int i = 0; i < 12; i++) {
        static const unsigned bits[] = {30, 31, 32, 40, 50, 62};
        const uint64_t n = (UINT64_C(1) << bits[i / 2]) - random_below(1000);
        const uint64_t sizes[] = {n / 3, 5000 + (uint64_t)i, n - n / 3 - 9000 - (uint64_t)i, 4000};
        check_rank(n, 4, i % 2 ? 1 : 3, random_below(2), sizes);
    }
    check_rank(1 << 20, 1024, 77, false, NULL);
    check_rank(1000, SHUF__RANKS_EQUAL, 999, false, NULL);
    check_rank(1000, SHUF__RANKS_EQUAL, 1000, false, NULL); /* an empty rank */
}

/* n = 2^40 on many ranks: on 2^20 equal ones, and on 1024. The checked rank of these has few
 * records: with 2^30 its plan would take 8 GiB. */
static void many_ranks(void **state)
{
    (void)state;
    enum { WORLD = 1024 };
    const uint64_t n = UINT64_C(1) << 40;
    random_start("many_ranks");
    for (int inverse = 0; inverse < 2; inverse++) {
        uint64_t sizes[WORLD], rest = n;
        const uint64_t rank = random_below(WORLD), few = 1 + random_below(50000);
        for (uint64_t r = 0; r < WORLD; r++)
            rest -= sizes[r] = r == rank ? few : n / WORLD - random_below(1000000);
        sizes[(rank + 1) % WORLD] += rest;
        check_rank(n, WORLD, rank, inverse, sizes);
        check_rank(n, SHUF__RANKS_EQUAL, random_below(SHUF__RANKS_EQUAL), inverse, NULL);
    }
}

/* ---- The end ---- */

/* OpenMP may start fewer threads than a computation asks for, as with OMP_THREAD_LIMIT=1. */
static void fewer_threads(void **state)
{
    (void)state;
    const int levels = omp_get_max_active_levels();
    random_start("fewer_threads");
    const struct shuf__plan plan = plan_of(300000, 2, false);
    omp_set_max_active_levels(0); /* one thread */
    check_world(&plan, 4, SHUF_AUTO);
    omp_set_max_active_levels(levels);
}

static void cancelled(void **state)
{
    (void)state;
    random_start("cancelled");
    const struct shuf__plan plan = plan_of(300000, 2, false);
    check_cancel(computation_of(&plan, SHUF_AUTO));
}

/* Plan and workspace take 16 bytes for each record, and counters. */
static void memory(void **state)
{
    (void)state;
    const struct shuf__plan plan = {.permutation = {.n = UINT64_C(1) << 40}, .world = 1024};
    const uint64_t records = shuf__plan_part(&plan, 0, false).count;
    const struct shuf__computation c = computation_of(&plan, SHUF_AUTO);
    assert_int_equal(c.request.dtype, SHUF_U32);
    const uint64_t bytes =
        shuf__request_shape(&c.request).bytes + shuf__exchange_bytes(16, &c.request.plan);
    assert_in_range(bytes, 16 * records, 16 * records + (16 << 20));
}

/* ---- One-sided plans ---- */

enum { UNIT = SHUF__PART_UNIT };

static struct shuf__computation one_sided_computation_of(const struct shuf__plan *plan)
{
    const struct shuf__computation c = plan_computation(plan);
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
    uint32_t *out = compute_plan(one_sided_computation_of(plan), threads);
    const uint32_t *numbers = out + parts * (windows + 1), *indices = numbers + places;
    shuf_primefold_make_inverse(&f);
    for (uint64_t i = 0; i < parts; i++) {
        const uint64_t first = i * plan->part, rest = places - first;
        check_part(plan, &f, first, rest < plan->part ? rest : plan->part, out + i * (windows + 1),
                   numbers + first, indices + first);
    }
    free(out);
}

static struct shuf__plan one_sided_plan_of(uint64_t n, uint64_t rank, uint64_t world, bool inverse)
{
    return (struct shuf__plan){
        .permutation = {.n = n, .seed = n ^ random_u64(), .epoch = random_below(9)},
        .rank = rank,
        .world = world,
        .inverse = inverse,
        .part = UNIT * (1 + random_below(3))};
}

static void one_sided_edges(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {1, 2, 7, 255, 256, 257, 4097, 65536, 65537, 131072, 200003};
    static const uint64_t worlds[] = {1, 2, 3, 8, SHUF__RANKS_ONE_SIDED};
    random_start("edges");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t k = 0; k < sizeof worlds / sizeof *worlds; k++)
            for (int inverse = 0; inverse < 2; inverse++) {
                const struct shuf__plan plan =
                    one_sided_plan_of(sizes[i], random_below(worlds[k]), worlds[k], inverse);
                check_plan(&plan, 1 + inverse);
            }
}

static void one_sided_uneven(void **state)
{
    (void)state;
    random_start("uneven");
    for (int i = 0; i < 60; i++) {
        uint64_t input[SHUF__RANKS_ONE_SIDED], output[SHUF__RANKS_ONE_SIDED];
        const uint64_t world = 1 + random_below(SHUF__RANKS_ONE_SIDED);
        struct shuf__plan plan =
            one_sided_plan_of(random_size(400000), random_below(world), world, random_below(2));
        random_sizes(plan.permutation.n, plan.world, input);
        random_sizes(plan.permutation.n, plan.world, output);
        plan.input = i % 4 ? input : NULL;
        plan.output = i % 4 != 1 ? output : NULL;
        check_plan(&plan, 1 + (int)random_below(4));
    }
}

/* Ranks of several windows. Values of 32 and of 64 bits. The checked rank gets few records. */
static void one_sided_large_n(void **state)
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
            struct shuf__plan plan = one_sided_plan_of(n, 2, 7, inverse);
            plan.input = input;
            plan.output = output;
            check_plan(&plan, 2);
        }
}

/* OpenMP may start fewer threads than a computation asks for, as with OMP_THREAD_LIMIT=1. */
static void one_sided_fewer_threads(void **state)
{
    (void)state;
    const int levels = omp_get_max_active_levels();
    random_start("fewer_threads");
    const struct shuf__plan plan = one_sided_plan_of(300000, 1, 2, false);
    omp_set_max_active_levels(0); /* one thread */
    check_plan(&plan, 4);
    omp_set_max_active_levels(levels);
}

/* As many windows as possible: they have 2^21 records as long as their number permits this. */
static void windows(void **state)
{
    (void)state;
    struct shuf__plan plan = one_sided_plan_of(UINT64_C(1) << 29, 0, 4, false);
    assert_int_equal(shuf__plan_windows(&plan).bits, 21);
    assert_int_equal(shuf__plan_windows(&plan).count, 256);
    plan.permutation.n++;
    assert_int_equal(shuf__plan_windows(&plan).bits, 22);
    assert_int_equal(shuf__plan_windows(&plan).count, 129);
    plan = one_sided_plan_of(UINT64_C(1) << 38, 0, 64, false);
    assert_int_equal(shuf__plan_windows(&plan).bits, 30);
    assert_int_equal(shuf__plan_windows(&plan).count, 256);
    plan = one_sided_plan_of(1, 0, 64, false);
    assert_int_equal(shuf__plan_windows(&plan).count, 1);
}

static void one_sided_cancelled(void **state)
{
    (void)state;
    random_start("cancelled");
    struct shuf__plan plan = one_sided_plan_of(600000, 0, 2, false);
    plan.part = UNIT;
    check_cancel(one_sided_computation_of(&plan));
}

/* A plan takes 8 bytes for each record of the rank, and counters. */
static void one_sided_memory(void **state)
{
    (void)state;
    const struct shuf__plan plan = {
        .permutation = {.n = UINT64_C(1) << 30}, .world = 4, .part = UINT64_C(1) << 26};
    const struct shuf__computation c = one_sided_computation_of(&plan);
    const uint64_t bytes =
        shuf__request_shape(&c.request).bytes + shuf__exchange_bytes(16, &c.request.plan);
    assert_in_range(bytes, UINT64_C(8) << 28, (UINT64_C(8) << 28) + (1 << 20));
}

/* Runs the tests with these instructions, if this processor has them. */
static int run_with(const char *name, const struct CMUnitTest *tests, size_t count)
{
    struct shuf__error error;
    if (shuf__simd_choose(name, &simd, &error) == SHUF_OK)
        return _cmocka_run_group_tests(name, tests, count, NULL, NULL);
    fprintf(stderr, "%s\n", error.text);
    if (error.status != SHUF_DEVICE)
        exit(1);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(edges),
        cmocka_unit_test(uneven),
        cmocka_unit_test(many_windows),
        cmocka_unit_test(large_n),
        cmocka_unit_test(many_ranks),
        cmocka_unit_test(fewer_threads),
        cmocka_unit_test(cancelled),
        cmocka_unit_test(memory),
        cmocka_unit_test(one_sided_edges),
        cmocka_unit_test(one_sided_uneven),
        cmocka_unit_test(one_sided_large_n),
        cmocka_unit_test(one_sided_fewer_threads),
        cmocka_unit_test(windows),
        cmocka_unit_test(one_sided_cancelled),
        cmocka_unit_test(one_sided_memory),
    };
    const size_t count = sizeof tests / sizeof *tests;
    int failed = 0;
    for (int i = 0; i < SHUF__SIMD_SETS; i++)
        failed += run_with(shuf__simd_names[i], tests, count);
    return failed;
}
