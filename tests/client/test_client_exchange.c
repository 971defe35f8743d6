/* SPDX-License-Identifier: MIT
 *
 * Plans of exchanges from a real daemon: copies, leases, the cache, prefetches, refused requests,
 * and a daemon that is killed. Here the plan of one rank is compared with look-ups. test_exchange.c
 * compares many plans with the definition.
 */
#include "support/client.h"
#include "support/cmocka_all.h"
#include "support/gpu.h"

#include <shuf/primefold.h>

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N = 50000, WORLD = 3 };

static const uint64_t input[WORLD] = {20000, 0, 30000}, output[WORLD] = {10000, 39999, 1};
static const shuf_request ranks = {.kind = SHUF_RANKS,
                                   .ranks = {.n = N,
                                             .seed = 7,
                                             .epoch = 2,
                                             .rank = 2,
                                             .world = WORLD,
                                             .input = input,
                                             .output = output}};

/* Compares the plan with look-ups. For each output place of all ranks, in order, the permutation
 * gives the record that goes there. The order must list those of rank 2, and the counts must
 * fit. */
static void check(const uint32_t *values)
{
    const uint32_t *to = values, *order = values + 2 * WORLD, *places = order + input[2];
    shuf_primefold f = shuf_primefold_make(N, ranks.ranks.seed, ranks.ranks.epoch);
    uint64_t k = 0, bound = 0;
    shuf_primefold_make_inverse(&f);
    for (uint64_t d = 0, place = 0; d < WORLD; d++) {
        for (bound += output[d]; place < bound; place++) {
            const uint64_t source = shuf_primefold_forward(&f, place);
            if (source >= input[0])
                assert_int_equal(order[k++], source - input[0]);
        }
        assert_int_equal(to[0] + (d > 0 ? to[1] : 0) + (d > 1 ? to[2] : 0), k);
    }
    assert_int_equal(k, input[2]);
    const uint64_t last = shuf_primefold_forward(&f, N - 1);
    assert_int_equal(values[WORLD] + values[WORLD + 2], output[2]);
    assert_int_equal(values[WORLD + (last < input[0] ? 0 : 2)], 1);
    assert_int_equal(places[0], 0);
}

/* The same plan, computed in this process. */
static void check_local(const shuf_request *request, const void *values, const shuf_shape *shape)
{
    for (unsigned threads = 1; threads <= 2; threads++) {
        void *own = malloc(shape->bytes);
        assert_int_equal(shuf_host_fill(request, threads, own, shape->bytes), SHUF_OK);
        assert_memory_equal(own, values, shape->bytes);
        free(own);
    }
}

static void copies(void **state)
{
    (void)state;
    shuf *h = client_open();
    shuf_shape shape;
    shuf_result result;
    assert_int_equal(shuf_shape_of(&ranks, &shape, NULL, 0), SHUF_OK);
    assert_int_equal(shape.count, 2 * WORLD + 30000 + 1);
    assert_true(shape.rows == 1 && shape.dtype == SHUF_U32 && shape.bytes == 4 * shape.count);
    uint32_t *values = malloc(shape.bytes);
    client_expect(h, shuf_copy(h, &ranks, values, shape.bytes - 1, NULL), SHUF_INVALID,
                  "bytes 120027: expected at least 120028");
    client_expect(h, shuf_copy(h, &ranks, values, shape.bytes, &result), SHUF_OK, "");
    assert_string_equal(result.algorithm, "primefold");
    check(values);
    check_local(&ranks, values, &shape);
    free(values);
    shuf_close(h);
}

static void take(shuf *h, const shuf_request *request, shuf_lease **lease)
{
    static const shuf_lease_options options = {.transports = SHUF_MEMFD};
    client_expect(h, shuf_lease_take(h, request, &options, lease), SHUF_OK, "");
    assert_string_equal((*lease)->device_id, "");
}

/* An equal request shares the result; one with another size does not. */
static void leases_are_shared(void **state)
{
    (void)state;
    shuf *h = client_open(), *other = client_open();
    shuf_lease *a = NULL, *b = NULL, *c = NULL, *d = NULL;
    uint64_t same[WORLD], more[WORLD] = {20000, 1, 29999};
    shuf_request request = ranks;
    memcpy(same, input, sizeof same);
    take(h, &ranks, &a);
    check(a->data);
    request.ranks.input = same;
    take(other, &request, &b);
    memset(same, 0xff, sizeof same); /* the daemon has its own copy */
    assert_true(b->shared && b->block == a->block);
    request.ranks.input = more;
    take(other, &request, &c);
    assert_true(!c->shared && c->block != a->block);
    request = ranks;
    request.ranks.inverse = true;
    take(other, &request, &d);
    assert_true(!d->shared && d->block != a->block);
    check(b->data);
    shuf_close(other);
    check(a->data);
    shuf_close(h);
}

static bool visit(void *context, const shuf_lease_entry *entry)
{
    unsigned *found = context;
    const shuf_ranks *r = &entry->request.ranks;
    *found += entry->request.kind == SHUF_RANKS && r->part == 0 && r->world == WORLD &&
              r->rank == 2 && r->n == N && !r->inverse && strcmp(r->algorithm, "primefold") == 0;
    return true;
}

static void prefetched(void **state)
{
    (void)state;
    unsigned found = 0;
    shuf *h = client_open();
    shuf_lease *lease = NULL;
    shuf_request request = ranks;
    request.ranks.epoch = 99;
    client_expect(h, shuf_prefetch(h, &request, NULL), SHUF_OK, "");
    client_expect(h, shuf_leases(h, visit, &found), SHUF_OK, "");
    assert_int_equal(found, 1);
    take(h, &request, &lease);
    assert_true(lease->shared);
    shuf_close(h);
}

static void refuse(shuf *h, const shuf_request *request, const char *words)
{
    uint32_t values[8];
    client_expect(h, shuf_copy(h, request, values, sizeof values, NULL), SHUF_INVALID, words);
}

static void refused(void **state)
{
    (void)state;
    static const uint64_t many[WORLD] = {N, 1, 0}, few[WORLD] = {1, 2, 3};
    shuf *h = client_open();
    shuf_lease *lease = NULL;
    shuf_request r = ranks;
    r.ranks.n = 0;
    refuse(h, &r, "n 0: expected 1 to 2^62");
    r = ranks;
    r.ranks.algorithm = "philox24";
    refuse(h, &r, "algorithm philox24: expected primefold");
    r = ranks;
    r.ranks.rank = WORLD;
    refuse(h, &r, "rank 3: expected less than world = 3");
    r.ranks.world = 0;
    refuse(h, &r, "world 0: expected 1 to");
    r.ranks.world = 4001;
    refuse(h, &r, "world 4001: expected 1 to 4000 with sizes");
    r = ranks;
    r.ranks.input = many;
    refuse(h, &r, "input[1] 1: expected at most 0, the rest of n = 50000");
    r = ranks;
    r.ranks.output = few;
    refuse(h, &r, "output: 3 sizes with the sum 6, expected n = 50000");
    r = (shuf_request){.kind = SHUF_RANKS, .ranks = {.n = UINT64_C(1) << 62, .world = 1}};
    client_expect(h, shuf_lease_take(h, &r, NULL, &lease), SHUF_NO_MEMORY, "2^63 bytes");
    shuf_close(h);
}

/* A GPU makes a plan in its own memory; else there is no such memory. */
static void in_device_memory(void **state)
{
    (void)state;
    static const shuf_lease_options device = {.transports = SHUF_CUDA_FD | SHUF_CUDA_IPC};
    const bool has_gpu = harness_is_cuda();
    shuf *h = client_open();
    shuf_lease *lease = NULL, *same = NULL;
    client_expect(h, shuf_lease_take(h, &ranks, &device, &lease), has_gpu ? SHUF_OK : SHUF_INVALID,
                  has_gpu ? ""
                          : "transport cuda-fd, cuda-ipc: the backend cpu has only memfd, inline");
    if (has_gpu) {
        uint32_t *values = malloc(lease->result.shape.bytes);
        gpu_read(lease->data, lease->result.shape.bytes, values);
        check(values);
        free(values);
        client_expect(h, shuf_lease_take(h, &ranks, &device, &same), SHUF_OK, "");
        assert_true(same->shared && same->block == lease->block);
    }
    shuf_close(h);
}

/* The next daemon computes the same plan. */
static void killed(void **state)
{
    (void)state;
    shuf *h = client_open();
    shuf_lease *before = NULL, *after = NULL;
    take(h, &ranks, &before);
    harness_kill(&harness_shared, SIGKILL);
    check(before->data);
    assert_true(harness_restart(&harness_shared));
    take(h, &ranks, &after);
    assert_memory_equal(before->data, after->data, after->result.shape.bytes);
    shuf_close(h);
}

/* The most ranks with sizes fit a message. */
static void most_ranks(void **state)
{
    (void)state;
    uint64_t ones[4000];
    uint32_t values[2 * 4000 + 2];
    shuf *h = client_open();
    for (int i = 0; i < 4000; i++)
        ones[i] = 1;
    const shuf_request request = {.kind = SHUF_RANKS,
                                  .ranks = {.n = 4000,
                                            .seed = UINT64_MAX,
                                            .epoch = UINT64_MAX,
                                            .rank = 3999,
                                            .world = 4000,
                                            .input = ones,
                                            .output = ones}};
    client_expect(h, shuf_copy(h, &request, values, sizeof values, NULL), SHUF_OK, "");
    shuf_primefold f = shuf_primefold_make(4000, UINT64_MAX, UINT64_MAX);
    shuf_primefold_make_inverse(&f);
    for (uint64_t r = 0; r < 4000; r++) {
        assert_int_equal(values[r], shuf_primefold_inverse(&f, 3999) == r);
        assert_int_equal(values[4000 + r], shuf_primefold_forward(&f, 3999) == r);
    }
    shuf_close(h);
}

/* ---- One-sided plans ---- */

enum {
    PART = 65536,
    PLACES = 190000, /* 3 parts */
    WINDOW = 1 << 21,
    WINDOWS = 2 + 3, /* of rank 0, and of rank 2 */
    PARTS = 3,
};

static const uint64_t wide[WORLD] = {WINDOW + 5, 0, 3 * WINDOW - 9};
static const uint64_t got[WORLD] = {WINDOW, PLACES, 3 * WINDOW - 4 - PLACES};
static const shuf_request one_sided = {.kind = SHUF_RANKS,
                                       .ranks = {.n = 4 * WINDOW - 4,
                                                 .seed = 7,
                                                 .epoch = 3,
                                                 .rank = 1,
                                                 .world = WORLD,
                                                 .input = wide,
                                                 .output = got,
                                                 .part = PART}};

/* Compares the parts of `part` places with look-ups. */
static void check_one_sided(const uint32_t *values, uint64_t part)
{
    const uint64_t parts = (PLACES - 1) / part + 1;
    const uint32_t *records = values + parts * (WINDOWS + 1), *indices = records + PLACES;
    const shuf_primefold f =
        shuf_primefold_make(one_sided.ranks.n, one_sided.ranks.seed, one_sided.ranks.epoch);
    for (uint64_t first = 0; first < PLACES; first += part, values += WINDOWS + 1) {
        const uint64_t count = PLACES - first < part ? PLACES - first : part;
        uint32_t next[WINDOWS + 1];
        memcpy(next, values, sizeof next);
        assert_true(next[0] == 0 && next[WINDOWS] == count);
        for (uint64_t place = first; place < first + count; place++) {
            const uint64_t source = shuf_primefold_forward(&f, got[0] + place);
            const uint64_t number = source < wide[0] ? source : source - wide[0];
            const uint64_t window = (source < wide[0] ? 0 : 2) + number / WINDOW;
            assert_int_equal(indices[place], next[window]++);
            assert_int_equal(records[first + indices[place]], number);
        }
        for (int w = 0; w < WINDOWS; w++)
            assert_int_equal(next[w], values[w + 1]);
    }
}

static void one_sided_copies(void **state)
{
    (void)state;
    shuf *h = client_open();
    shuf_shape shape;
    shuf_result result;
    assert_int_equal(shuf_shape_of(&one_sided, &shape, NULL, 0), SHUF_OK);
    assert_int_equal(shape.count, PARTS * (WINDOWS + 1) + 2 * PLACES);
    assert_true(shape.rows == 1 && shape.dtype == SHUF_U32 && shape.bytes == 4 * shape.count);
    uint32_t *values = malloc(shape.bytes);
    client_expect(h, shuf_copy(h, &one_sided, values, shape.bytes - 1, NULL), SHUF_INVALID,
                  "bytes 1520071: expected at least 1520072");
    client_expect(h, shuf_copy(h, &one_sided, values, shape.bytes, &result), SHUF_OK, "");
    assert_string_equal(result.algorithm, "primefold");
    check_one_sided(values, PART);
    check_local(&one_sided, values, &shape);
    free(values);
    shuf_close(h);
}

/* Over the socket, and in the memory of the daemon. */
static void one_sided_leases(void **state)
{
    (void)state;
    static const shuf_lease_options copied = {.transports = SHUF_INLINE};
    shuf *h = client_open(), *other = client_open();
    shuf_lease *a = NULL, *b = NULL, *c = NULL, *d = NULL, *e = NULL;
    shuf_request request = one_sided;
    client_expect(h, shuf_lease_take(h, &request, &copied, &a), SHUF_OK, "");
    assert_int_equal(a->result.shape.count, PARTS * (WINDOWS + 1) + 2 * PLACES);
    check_one_sided(a->data, PART);
    take(h, &request, &b);
    check_one_sided(b->data, PART);
    take(other, &request, &c);
    assert_true(c->shared && c->block == b->block);
    request.ranks.part = 2 * PART;
    take(other, &request, &d);
    assert_true(!d->shared && d->block != b->block);
    check_one_sided(d->data, 2 * PART);
    request.ranks.part = 0; /* of both sides */
    take(other, &request, &e);
    assert_true(!e->shared && e->block != b->block && e->block != d->block);
    assert_int_equal(e->result.shape.count, 2 * WORLD + PLACES);
    shuf_close(other);
    check_one_sided(b->data, PART);
    shuf_close(h);
}

static void one_sided_prefetch(void **state)
{
    (void)state;
    shuf *h = client_open();
    shuf_lease *lease = NULL, *other = NULL;
    shuf_request request = one_sided;
    request.ranks.part = 3 * PART;
    client_expect(h, shuf_prefetch(h, &request, NULL), SHUF_OK, "");
    request.ranks.part = 4 * PART;
    take(h, &request, &other);
    assert_false(other->shared);
    request.ranks.part = 3 * PART;
    take(h, &request, &lease);
    assert_true(lease->shared && lease->block != other->block);
    check_one_sided(lease->data, request.ranks.part);
    shuf_close(h);
}

static void one_sided_refused(void **state)
{
    (void)state;
    shuf *h = client_open();
    shuf_lease *lease = NULL;
    shuf_request r = one_sided;
    r.ranks.part = 1;
    refuse(h, &r, "part 1: expected a multiple of 65536 up to 2^31, or 0 for a plan of both sides");
    client_expect(h, shuf_prefetch(h, &r, NULL), SHUF_INVALID, "part 1: expected");
    r = (shuf_request){.kind = SHUF_RANKS, .ranks = {.n = 100, .world = 65, .part = PART}};
    refuse(h, &r, "world 65: expected at most 64 for a one-sided plan");
    r = (shuf_request){.kind = SHUF_RANKS,
                       .ranks = {.n = (UINT64_C(1) << 32) + 1, .world = 1, .part = PART}};
    refuse(h, &r, "input of rank 0, 4294967297 records: expected at most 2^32");
    r = (shuf_request){.kind = SHUF_RANKS,
                       .ranks = {.n = UINT64_C(1) << 38, .world = 64, .part = PART}};
    const uint64_t all[64] = {UINT64_C(1) << 38};
    r.ranks.output = all; /* 2 TiB */
    client_expect(h, shuf_lease_take(h, &r, NULL, &lease), SHUF_NO_MEMORY, " TiB of ");
    shuf_close(h);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies),
        cmocka_unit_test(leases_are_shared),
        cmocka_unit_test(prefetched),
        cmocka_unit_test(refused),
        cmocka_unit_test(in_device_memory),
        cmocka_unit_test(most_ranks),
        cmocka_unit_test(one_sided_copies),
        cmocka_unit_test(one_sided_leases),
        cmocka_unit_test(one_sided_prefetch),
        cmocka_unit_test(one_sided_refused),
        cmocka_unit_test(killed),
    };
    harness_backend = harness_backend_or_skip(argc, argv);
    return cmocka_run_group_tests(tests, harness_start_shared, harness_stop_shared);
}
