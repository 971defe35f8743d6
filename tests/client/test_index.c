/* SPDX-License-Identifier: MIT
 *
 * Look-ups by the library in a real daemon: they give the values of the whole permutation, and
 * every mistake has a clear message.
 */
#include "shuf.h"
#include "shuf/philox24.h"
#include "shuf/primefold.h"
#include "support/client.h"
#include "support/cmocka_all.h"
#include "support/golden.h"
#include "support/harness.h"
#include "support/random.h"
#include "support/wire.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BIT(k) (UINT64_C(1) << (k))

enum { MOST = SHUF_LOOKUPS };

static void look_up(shuf *handle, const shuf_request *request, shuf_direction direction,
                    const uint64_t *at, size_t count, uint64_t *out)
{
    client_expect(handle, shuf_index(handle, &request->permutation, direction, at, count, out),
                  SHUF_OK, "");
}

/* ---- The values ---- */

/* Looks up every position, and then every value. */
static void check_every_position(shuf *handle, const shuf_request *request)
{
    size_t size = request->permutation.n * sizeof(uint64_t);
    uint64_t *values = malloc(size), *at = malloc(size), *out = malloc(size);
    shuf_request whole = *request;
    whole.permutation.dtype = SHUF_U64;
    client_expect(handle, shuf_copy(handle, &whole, values, size, NULL), SHUF_OK, "");
    for (uint64_t i = 0; i < request->permutation.n; i++)
        at[i] = i;
    look_up(handle, request, SHUF_FORWARD, at, request->permutation.n, out);
    assert_memory_equal(out, values, size);
    look_up(handle, request, SHUF_INVERSE, values, request->permutation.n, out);
    assert_memory_equal(out, at, size);
    free(values);
    free(at);
    free(out);
}

static void every_position_is_looked_up(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {1,   2,   3,   7,    63,   64,   65,    66,   100,
                                     127, 128, 129, 1000, 1024, 8000, 65537, 99991};
    static const uint64_t epochs[] = {0, 3, BIT(40) + 5, UINT64_MAX};
    static const char *const names[] = {NULL, "primefold"};
    shuf *handle = client_open();
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int e = 0; e < 4; e++) {
            const shuf_request request = {.permutation = {.algorithm = names[e % 2],
                                                          .n = sizes[i],
                                                          .seed = BIT(50) - i,
                                                          .epoch = epochs[e]}};
            check_every_position(handle, &request);
        }
    shuf_close(handle);
}

/* These algorithms leave values out, so the daemon has to count values for a look-up. */
static void every_position_is_looked_up_by_rank(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {1,     2,     16,    17,    1000,  16383, 16384,
                                     16385, 20000, 32769, 65535, 65536, 65537, 99991};
    static const char *const names[] = {"philox24", "lcg"};
    shuf *handle = client_open();
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int a = 0; a < 2; a++) {
            const shuf_request request = {
                .permutation = {
                    .algorithm = names[a], .n = sizes[i], .seed = i, .epoch = BIT(63) + i}};
            check_every_position(handle, &request);
        }
    shuf_close(handle);
}

/* Golden values, computed from docs/spec.md alone. */
static void golden_values_match(void **state)
{
    (void)state;
    struct golden row;
    unsigned rows = 0;
    uint64_t at[GOLDEN_WHOLE], out[GOLDEN_WHOLE];
    FILE *table = golden_open("permute.txt");
    shuf *handle = client_open();
    while (golden_next(table, &row)) {
        const shuf_request request = {
            .permutation = {
                .algorithm = row.algorithm, .n = row.n, .seed = row.seed, .epoch = row.epoch}};
        for (unsigned i = 0; i < row.count; i++)
            at[i] = golden_position(&row, i);
        look_up(handle, &request, SHUF_FORWARD, at, row.count, out);
        assert_memory_equal(out, row.values, row.count * sizeof *out);
        look_up(handle, &request, SHUF_INVERSE, row.values, row.count, out);
        assert_memory_equal(out, at, row.count * sizeof *out);
        rows++;
    }
    assert_true(rows > 400);
    fclose(table);
    shuf_close(handle);
}

enum { SAMPLE = 200 };

/* Looks up random positions of a permutation that is too large to compute whole. */
static void check_sample(shuf *handle, uint64_t n)
{
    uint64_t values[SAMPLE], at[SAMPLE], out[SAMPLE];
    shuf_request request = {.permutation = {.n = n, .seed = random_u64(), .epoch = random_u64()}};
    shuf_request slice = request;
    slice.permutation.view = SHUF_VIEW_SLICE;
    slice.permutation.dtype = SHUF_U64;
    slice.permutation.count = SAMPLE;
    slice.permutation.stride = 1 + random_below(n / SAMPLE);
    slice.permutation.offset = random_below(n - (SAMPLE - 1) * slice.permutation.stride);
    client_expect(handle, shuf_copy(handle, &slice, values, sizeof values, NULL), SHUF_OK, "");
    const shuf_primefold f =
        shuf_primefold_make(n, request.permutation.seed, request.permutation.epoch);
    for (int i = 0; i < SAMPLE; i++) {
        at[i] = slice.permutation.offset + (uint64_t)i * slice.permutation.stride;
        assert_int_equal(values[i], shuf_primefold_forward(&f, at[i]));
    }
    look_up(handle, &request, SHUF_FORWARD, at, SAMPLE, out);
    assert_memory_equal(out, values, sizeof values);
    look_up(handle, &request, SHUF_INVERSE, out, SAMPLE, out);
    assert_memory_equal(out, at, sizeof at);
}

static void positions_of_large_permutations_match(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {1000000000,  BIT(31) - 1, BIT(31),     BIT(31) + 1,
                                     BIT(32),     BIT(32) + 1, BIT(33) + 1, BIT(47) + 12345,
                                     BIT(62) - 1, BIT(62)};
    shuf *handle = client_open();
    random_start("positions_of_large_permutations_match");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        check_sample(handle, sizes[i]);
    shuf_close(handle);
}

/* Calls with numbers of queries around two limits: the most queries of one request, and the most
 * look-ups on the loop's thread. `out` and `at` are the same array. */
static void many_queries_match(void **state)
{
    (void)state;
    static const size_t counts[] = {1,    1023,     1024,     1025,         MOST - 1,
                                    MOST, MOST + 1, 2 * MOST, 2 * MOST + 1, 100003};
    const shuf_request permutation = {.permutation = {.n = BIT(62), .seed = 7, .epoch = 9}};
    const shuf_primefold f = shuf_primefold_make(
        permutation.permutation.n, permutation.permutation.seed, permutation.permutation.epoch);
    shuf *handle = client_open();
    random_start("many_queries_match");
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        uint64_t *at = malloc(counts[c] * sizeof *at), *out = malloc(counts[c] * sizeof *out);
        for (size_t i = 0; i < counts[c]; i++)
            at[i] = out[i] =
                i % 3 == 2 ? at[i / 2] : random_below(permutation.permutation.n); /* some positions
                                                                                   * occur twice */
        look_up(handle, &permutation, SHUF_FORWARD, out, counts[c], out);
        for (size_t i = 0; i < counts[c]; i++)
            assert_int_equal(out[i], shuf_primefold_forward(&f, at[i]));
        look_up(handle, &permutation, SHUF_INVERSE, out, counts[c], out);
        assert_memory_equal(out, at, counts[c] * sizeof *at);
        free(at);
        free(out);
    }
    shuf_close(handle);
}

/* ---- Mistakes, in the library ---- */

/* Each field that shuf_index() does not use has its own message. */
static void unused_fields_are_refused(void **state)
{
    (void)state;
    static const uint64_t at[4] = {0, 1, 999, 1000};
    static const struct {
        shuf_permutation permutation;
        int direction;
        const char *words;
    } rows[] = {
        {{.n = 0}, 0, "n 0: expected 1 to 2^62 (4611686018427387904)"},
        {{.n = BIT(62) + 1}, 1, "n 4611686018427387905: expected 1 to 2^62"},
        {{.n = 1000}, 0, "at[3] 1000: expected less than n = 1000"},
        {{.n = 1000}, 1, "at[3] 1000: expected less than n = 1000"},
        {{.n = 1}, 0, "at[1] 1: expected less than n = 1"},
        {{.n = 2000}, 2, "direction 2: expected FORWARD or INVERSE"},
        {{.n = 2000, .view = SHUF_VIEW_SLICE, .count = 1, .stride = 1},
         1,
         "view SLICE: the inverse of a slice is not defined, expected the whole permutation"},
        {{.n = 2000, .view = SHUF_VIEW_SHARD, .world = 1},
         1,
         "view SHARD: the inverse of a slice is not defined, expected the whole permutation"},
        {{.n = 2000, .view = SHUF_VIEW_SLICE, .count = 1, .stride = 1},
         0,
         "view SLICE: positions are those of the whole permutation, expected view ALL"},
        {{.n = 2000, .view = SHUF_VIEW_SHARD, .world = 1},
         0,
         "view SHARD: positions are those of the whole permutation, expected view ALL"},
        {{.n = 2000, .view = (shuf_view)7}, 0, "view 7: expected ALL"},
        {{.n = 2000, .epochs = 2}, 0, "epochs 2: expected at most 1 with index"},
        {{.n = 2000, .offset = 3}, 0, "offset 3: expected 0 with index"},
        {{.n = 2000, .count = 3}, 1, "count 3: expected 0 with index"},
        {{.n = 2000, .stride = 3}, 0, "stride 3: expected 0 with index"},
        {{.n = 2000, .rank = 3}, 0, "rank 3: expected 0 with index"},
        {{.n = 2000, .world = 3}, 0, "world 3: expected 0 with index"},
        {{.n = 2000, .drop_last = true}, 0, "drop_last 1: expected 0 with index"},
        {{.n = 2000, .dtype = SHUF_U64}, 0, "dtype u64: expected auto with index"},
        {{.n = 2000, .fingerprint = true}, 0, "fingerprint 1: expected 0 with index"},
        {{.n = BIT(36) + 1, .algorithm = "philox24"},
         0,
         "n 68719476737: expected at most 2^36 or a power of two for an index with philox24, which "
         "must count the values before a position"},
        {{.n = BIT(62) - 1, .algorithm = "lcg"},
         1,
         "n 4611686018427387903: expected at most 2^36 or a power of two for an index with lcg"},
        {{.n = 2000, .algorithm = "x"}, 0, "algorithm \"x\": expected primefold, philox24 or lcg"},
    };
    uint64_t out[4];
    shuf *handle = client_open();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        client_expect(
            handle,
            shuf_index(handle, &rows[i].permutation, (shuf_direction)rows[i].direction, at, 4, out),
            SHUF_INVALID, rows[i].words);
    const shuf_request right = {.permutation = {.n = 2000, .epochs = 1}};
    look_up(handle, &right, SHUF_FORWARD, at, 4, out);
    assert_string_equal(shuf_message(handle), "");
    shuf_close(handle);
}

static void bad_arguments_are_refused(void **state)
{
    (void)state;
    static char name[2000];
    uint64_t place = 0;
    const shuf_request request = {.permutation = {.n = 5}};
    const shuf_request long_name = {
        .permutation = {.n = 5, .algorithm = memset(name, 'x', sizeof name - 1)}};
    shuf *handle = client_open();
    client_expect(handle, shuf_index(handle, &request.permutation, SHUF_FORWARD, NULL, 3, &place),
                  SHUF_INVALID, "at NULL: expected 3 numbers");
    client_expect(handle, shuf_index(handle, &request.permutation, SHUF_FORWARD, &place, 1, NULL),
                  SHUF_INVALID, "out NULL: expected 1 number");
    client_expect(handle,
                  shuf_index(handle, &long_name.permutation, SHUF_FORWARD, &place, 1, &place),
                  SHUF_INVALID, "xxx\": expected primefold, philox24 or lcg");
    shuf_close(handle);
}

/* The library checks all queries before it sends the first request. A call without queries needs no
 * daemon. */
static void queries_are_checked_before_sending(void **state)
{
    (void)state;
    static uint64_t at[2 * MOST + 10], out[2 * MOST + 10];
    const shuf_request request = {.permutation = {.n = 5}};
    shuf *handle;
    assert_int_equal(shuf_connect(&handle, "/nonexistent/shufd.sock"), SHUF_NO_DAEMON);
    shuf_set_reconnect(handle, 0);
    at[2 * MOST + 9] = 5;
    client_expect(handle,
                  shuf_index(handle, &request.permutation, SHUF_FORWARD, at, 2 * MOST + 10, out),
                  SHUF_INVALID, "at[16009] 5: expected less than n = 5");
    client_expect(handle, shuf_index(handle, &request.permutation, SHUF_FORWARD, NULL, 0, NULL),
                  SHUF_OK, "");
    client_expect(handle, shuf_index(handle, &request.permutation, SHUF_FORWARD, at, 1, out),
                  SHUF_NO_DAEMON, "/nonexistent/shufd.sock");
    shuf_close(handle);
}

static void next_daemon_replies_after_kill(void **state)
{
    (void)state;
    uint64_t at[3] = {1, 2, 3}, before[3], after[3];
    const shuf_request request = {.permutation = {.n = 12345, .seed = 3}};
    shuf *handle = client_open();
    look_up(handle, &request, SHUF_FORWARD, at, 3, before);
    harness_kill(&harness_shared, SIGKILL);
    assert_true(harness_restart(&harness_shared));
    look_up(handle, &request, SHUF_FORWARD, at, 3, after);
    assert_memory_equal(before, after, sizeof before);
    shuf_close(handle);
}

/* ---- Rank indexes ---- */

enum { COUNTED_N = 300001 }; /* 32 tiles */

static const uint64_t *reference_values(uint64_t seed)
{
    static uint64_t values[COUNTED_N];
    const shuf_philox24 f = shuf_philox24_make(COUNTED_N, seed, 0);
    for (uint64_t x = 0, kept = 0; kept < COUNTED_N; x++) {
        const uint64_t value = shuf_philox24_forward(&f, x);
        if (value < COUNTED_N)
            values[kept++] = value;
    }
    return values;
}

/* Look-ups and late slices in either order: each uses the rank index that the other has filled. */
static void check_shared_rank_index(shuf *handle, uint64_t seed, bool slice_first)
{
    enum { SOME = 500 };
    uint64_t at[SOME], out[SOME], part[SOME];
    const uint64_t *values = reference_values(seed);
    const shuf_request request = {
        .permutation = {.algorithm = "philox24", .n = COUNTED_N, .seed = seed}};
    shuf_request slice = request;
    slice.permutation.view = SHUF_VIEW_SLICE;
    slice.permutation.dtype = SHUF_U64;
    slice.permutation.count = SOME;
    for (int round = 0; round < 2; round++) {
        slice.permutation.stride = round ? 1 : 7;
        slice.permutation.offset = COUNTED_N - SOME * slice.permutation.stride - random_below(1000);
        if ((round == 0) == slice_first) {
            client_expect(handle, shuf_copy(handle, &slice, part, sizeof part, NULL), SHUF_OK, "");
            for (uint64_t i = 0; i < SOME; i++)
                assert_int_equal(part[i],
                                 values[slice.permutation.offset + i * slice.permutation.stride]);
        }
        for (int i = 0; i < SOME; i++)
            at[i] = random_below(COUNTED_N);
        look_up(handle, &request, SHUF_FORWARD, at, SOME, out);
        for (int i = 0; i < SOME; i++)
            assert_int_equal(out[i], values[at[i]]);
        look_up(handle, &request, SHUF_INVERSE, out, SOME, out);
        assert_memory_equal(out, at, sizeof at);
    }
}

/* A slice so late that a GPU fills a rank index. Look-ups use the same rank index. */
static void late_slice_and_look_ups_share_rank_index(void **state)
{
    (void)state;
    enum { SOME = 500 };
    struct harness h;
    shuf *handle;
    uint64_t at[SOME], out[SOME], part[SOME];
    const shuf_request request = {.permutation = {.algorithm = "philox24",
                                                  .n = BIT(TEST_SANITIZED ? 25 : 27) + BIT(20) + 1,
                                                  .seed = 5}};
    shuf_request slice = request;
    slice.permutation.view = SHUF_VIEW_SLICE;
    slice.permutation.dtype = SHUF_U64;
    slice.permutation.count = SOME;
    slice.permutation.stride = 1;
    wire_start(&h, harness_backend, "");
    assert_int_equal(shuf_connect(&handle, h.socket), SHUF_OK);
    for (uint64_t round = 0; round < 3; round++) {
        slice.permutation.offset = request.permutation.n - SOME - 100000 * round;
        client_expect(handle, shuf_copy(handle, &slice, part, sizeof part, NULL), SHUF_OK, "");
        if (round == 0) /* the blocks of the slice and of its rank index, which is in host memory */
            WIRE_AWAIT(&h, s, s.blocks == 2 && s.host_used > 0);
        for (int i = 0; i < SOME; i++)
            at[i] = slice.permutation.offset + (uint64_t)i;
        look_up(handle, &request, SHUF_FORWARD, at, SOME, out);
        assert_memory_equal(out, part, sizeof out);
        look_up(handle, &request, SHUF_INVERSE, part, SOME, out);
        assert_memory_equal(out, at, sizeof out);
    }
    shuf_close(handle);
    assert_true(harness_stop(&h));
}

/* More rank indexes than the budget holds: the least recently used ones are evicted, and filled
 * again later. */
static void rank_indexes_are_evicted_and_refilled(void **state)
{
    (void)state;
    struct harness h;
    shuf *handle;
    random_start("rank_indexes_are_evicted_and_refilled");
    wire_start(&h, harness_backend, "host_memory = 16Ki\ndevice_memory = 8Mi\n");
    assert_int_equal(shuf_connect(&handle, h.socket), SHUF_OK);
    for (uint64_t i = 0; i < 24; i++)
        check_shared_rank_index(handle, 100 + i % 8, i % 2);
    Shuf__StatusReply s = wire_status(&h);
    assert_true(s.host_used <= s.host_limit && s.host_limit == 16 << 10);
    assert_true(s.evicted > 10);
    assert_true(s.blocks > 1);
    shuf_close(handle);
    assert_true(harness_stop(&h));
}

/* Without room for a rank index, a slice is computed without it, and a look-up fails with the
 * reason. */
static void rank_index_without_room(void **state)
{
    (void)state;
    struct harness h;
    shuf *handle;
    uint64_t place = 0, values[3];
    const shuf_request request = {
        .permutation = {.algorithm = "philox24", .n = COUNTED_N, .seed = 3}};
    shuf_request slice = request;
    slice.permutation.view = SHUF_VIEW_SLICE;
    slice.permutation.dtype = SHUF_U64;
    slice.permutation.offset = COUNTED_N - 3;
    slice.permutation.count = 3;
    slice.permutation.stride = 1;
    wire_start(&h, harness_backend, "host_memory = 4Ki\ndevice_memory = 2Mi\n");
    assert_int_equal(shuf_connect(&handle, h.socket), SHUF_OK);
    shuf_lease *lease = NULL; /* has the only block of the budget */
    client_expect(handle, shuf_lease_take(handle, &slice, NULL, &lease), SHUF_OK, "");
    assert_memory_equal(lease->data, reference_values(3) + slice.permutation.offset, sizeof values);
    client_expect(handle, shuf_index(handle, &request.permutation, SHUF_FORWARD, &place, 1, &place),
                  SHUF_BUSY,
                  "4 KiB of 4 KiB are held by this user's own leases and requests (host_memory)");
    shuf_lease_release(handle, &lease);
    look_up(handle, &request, SHUF_FORWARD, &place, 1, &place);
    assert_int_equal(place, reference_values(3)[0]);
    const shuf_request large = {.permutation = {.algorithm = "lcg", .n = BIT(33) + 1}};
    client_expect(
        handle, shuf_index(handle, &large.permutation, SHUF_FORWARD, &place, 1, &place),
        SHUF_NO_MEMORY,
        "n 8589934593: for its rank index, the request needs 10 MiB of host memory, the limit "
        "is 4 KiB: raise host_memory in ");
    shuf_close(handle);
    assert_true(harness_stop(&h));
}

static void rank_index_is_not_kept_without_cache(void **state)
{
    (void)state;
    struct harness h;
    shuf *handle;
    random_start("rank_index_is_not_kept_without_cache");
    wire_start(&h, harness_backend, "cache_time = 0\n");
    assert_int_equal(shuf_connect(&handle, h.socket), SHUF_OK);
    check_shared_rank_index(handle, 5, true);
    WIRE_AWAIT(&h, s, s.blocks == 0 && s.host_used == 0);
    shuf_close(handle);
    assert_true(harness_stop(&h));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_values_match),
        cmocka_unit_test(every_position_is_looked_up),
        cmocka_unit_test(every_position_is_looked_up_by_rank),
        cmocka_unit_test(positions_of_large_permutations_match),
        cmocka_unit_test(many_queries_match),
        cmocka_unit_test(unused_fields_are_refused),
        cmocka_unit_test(bad_arguments_are_refused),
        cmocka_unit_test(queries_are_checked_before_sending),
        cmocka_unit_test(next_daemon_replies_after_kill),
        cmocka_unit_test(late_slice_and_look_ups_share_rank_index),
        cmocka_unit_test(rank_indexes_are_evicted_and_refilled),
        cmocka_unit_test(rank_index_without_room),
        cmocka_unit_test(rank_index_is_not_kept_without_cache),
    };
    harness_backend = harness_backend_or_skip(argc, argv);
    return cmocka_run_group_tests(tests, harness_start_shared, harness_stop_shared);
}
