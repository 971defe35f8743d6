/* SPDX-License-Identifier: MIT
 *
 * Parts of permutations, on the backend of the command line: slices, padded shards, batches of
 * epochs, every size near a power of two, and sizes above 32 bits. Every value is compared with the
 * inline algorithms.
 */
#include "shuf/philox24.h"
#include "shuf/windowed.h"
#include "slice.h"
#include "support/cmocka_all.h"
#include "support/computation.h"
#include "support/random.h"
#include "support/sanitized.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define BIT(k) (UINT64_C(1) << (k))

/* Checks every algorithm, with values of 8 bytes, and of 4 bytes if n allows them. */
static void check_algorithms(struct shuf__computation computation)
{
    struct shuf__permutation *p = &computation.request.permutation;
    for (int a = 0; a < SHUF_ALGORITHM_COUNT; a++)
        for (unsigned width = p->n <= BIT(32) ? 4 : 8; width <= 8; width += 4) {
            computation_set_width(&computation, width);
            p->algorithm = (enum shuf_algorithm)a;
            computation_check(&computation);
        }
}

static void check_slice(uint64_t n, uint64_t offset, uint64_t count, uint64_t stride)
{
    struct shuf__computation computation =
        computation_whole(SHUF_ALGORITHM_PHILOX24, n, 0x123456789abcdef, BIT(40) + n);
    struct shuf__permutation *p = &computation.request.permutation;
    p->offset = offset;
    p->count = count;
    p->stride = stride;
    check_algorithms(computation);
}

static uint64_t slice_length(uint64_t n, uint64_t offset, uint64_t stride)
{
    return (n - 1 - offset) / stride + 1;
}

static const uint64_t sizes[] = {1, 2, 15, 16, 17, 1000, 4096, 65536, 70001};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

static void slices_at_edges_match(void **state)
{
    (void)state;
    for (int i = 0; i < SIZES; i++) {
        uint64_t n = sizes[i], half = n / 2;
        check_slice(n, 0, n, 1);
        check_slice(n, 0, 1, 1);
        check_slice(n, n - 1, 1, 1);
        check_slice(n, n - 1, 1, n + 5);
        check_slice(n, n / 3, 1, BIT(62));
        check_slice(n, half, n - half, 1);
        check_slice(n, 0, slice_length(n, 0, half + 1), half + 1);
        check_slice(n, 0, slice_length(n, 0, 3), 3);
        check_slice(n, half, slice_length(n, half, 7), 7);
    }
}

/* The last requested value is just before or just after each possible beginning of a tile. A
 * backend that stops too early would miss it. */
static void slices_ending_at_tiles_match(void **state)
{
    (void)state;
    enum { N = 20001, DOMAIN = 32768, STEP = 512 };
    struct shuf__computation computation = computation_whole(SHUF_ALGORITHM_PHILOX24, N, 7, 0);
    struct shuf__permutation *p = &computation.request.permutation;
    shuf_philox24 f = shuf_philox24_make(N, 7, 0);
    p->count = 1;
    for (uint64_t x = 0, kept = 0; x < DOMAIN; x++) {
        if (x % STEP == 0)
            for (p->offset = kept ? kept - 1 : 0; p->offset <= kept; p->offset++)
                computation_check(&computation);
        kept += shuf_philox24_forward(&f, x) < N;
    }
}

/* In a padded shard, the last position may be n or more. It then wraps to the front. */
static void padded_shards_match(void **state)
{
    (void)state;
    for (int i = 0; i < SIZES; i++)
        for (uint64_t world = 1; world <= 9 && world <= sizes[i]; world += computation_full ? 1 : 4)
            for (uint64_t rank = 0; rank < world; rank++)
                check_slice(sizes[i], rank, (sizes[i] + world - 1) / world, world);
}

static void sizes_near_powers_of_two_match(void **state)
{
    (void)state;
    for (unsigned k = 1; k <= (computation_full ? 20 : 17); k++)
        for (int d = -1; d <= 1; d++)
            for (int a = 0; a < SHUF_ALGORITHM_COUNT; a++) {
                struct shuf__computation computation = computation_whole(
                    (enum shuf_algorithm)a, BIT(k) + (uint64_t)(int64_t)d, k, BIT(k));
                computation_set_width(&computation, k % 2 ? 4 : 8);
                computation_check(&computation);
            }
}

/* For small domains, each length of the halves of a philox24 input has its own code. */
static void every_small_size_matches(void **state)
{
    (void)state;
    for (uint64_t n = 1; n <= 2500; n += computation_full ? 1 : 7) {
        struct shuf__computation computation =
            computation_whole(SHUF_ALGORITHM_PHILOX24, n, n, BIT(50) - n);
        struct shuf__permutation *p = &computation.request.permutation;
        computation_check(&computation);
        p->algorithm = SHUF_ALGORITHM_PRIMEFOLD;
        computation_check(&computation);
        p->offset = n / 5;
        p->stride = 3;
        p->count = slice_length(n, p->offset, p->stride);
        computation_check(&computation);
        p->algorithm = SHUF_ALGORITHM_PHILOX24;
        computation_check(&computation);
    }
}

static void check_batch(uint64_t n, uint64_t rows, uint64_t epoch)
{
    struct shuf__computation computation = computation_whole(SHUF_ALGORITHM_PHILOX24, n, 99, epoch);
    struct shuf__permutation *p = &computation.request.permutation;
    p->rows = rows;
    check_algorithms(computation);
}

/* Short and long rows, but only a few: some tools make a GPU very slow. */
static void few_rows_match(void **state)
{
    (void)state;
    check_batch(10, 50, 3);
    check_batch(1000, 20, UINT64_MAX - 3);
    check_batch(100003, 2, 1);
}

static void batches_match(void **state)
{
    (void)state;
    check_batch(1, 1000, 0);
    check_batch(10, 5000, 3);
    check_batch(16, 5000, BIT(32) - 2500);
    check_batch(17, 3, UINT64_MAX - 1); /* the epoch overflows to 0 */
    check_batch(1000, 300, UINT64_MAX);
    check_batch(1024, 65, BIT(63));
    check_batch(100003, 7, 1);
    check_batch(65536, 3, 1);
    if (computation_full) {
        check_batch(17, 200000, 3); /* more rows than one launch of a GPU takes */
        check_batch(16, 200000, 3);
    }
}

static void batches_of_slices_match(void **state)
{
    (void)state;
    struct shuf__computation computation =
        computation_whole(SHUF_ALGORITHM_PHILOX24, 1001, 5, UINT64_MAX - 10);
    struct shuf__permutation *p = &computation.request.permutation;
    p->rows = 33;
    p->offset = 3;
    p->stride = 4;
    p->count = 251; /* the last position wraps to the front: 3 + 250 * 4 = 1003 */
    check_algorithms(computation);
    p->n = 1000003;
    p->rows = 3;
    p->stride = 1000;
    p->count = 1001;
    check_algorithms(computation);
    p->n = BIT(62) - 1; /* each row must stop after its last requested value */
    computation_set_width(&computation, 8);
    p->count = 5;
    check_algorithms(computation);
}

/* Only values near the front are requested, or n is a power of two. So no backend computes the
 * whole permutation. */
static void slices_beyond_32_bits_match(void **state)
{
    (void)state;
    check_slice(BIT(31) + 1, 5, 1000, 3);
    check_slice(BIT(32), BIT(32) - 1, 1, 1);
    check_slice(BIT(32), 17, 1000, BIT(32) / 1001);
    check_slice(BIT(32) + 1, 1000, 5000, 3);
    check_slice(BIT(33), BIT(33) - 70000, 70000, 1);
    check_slice(BIT(33) + 12345, 0, 100000, 1);
    check_slice(BIT(40) + 1, 3, 1, 1);
    check_slice(BIT(62) - 1, 0, 5000, 7);
    check_slice(BIT(62), BIT(62) - 5000, 5000, 1);
    check_slice(BIT(62), 1, 5, BIT(60) - 1);
}

/* Sizes on both sides of the limits at which primefold changes the width of its words or the number
 * of its maps. The last size needs cycle walking: the prime above 31400 is 31469. */
static void sizes_near_word_limits_match(void **state)
{
    (void)state;
    static const uint64_t edges[] = {256,   257,   509,   510,   1021,    1022,        8191, 8192,
                                     32749, 32750, 65521, 65522, BIT(17), BIT(17) + 1, 31400};
    for (size_t i = 0; i < sizeof edges / sizeof edges[0]; i++) {
        struct shuf__computation computation =
            computation_whole(SHUF_ALGORITHM_PRIMEFOLD, edges[i], 7, i);
        computation_check(&computation);
    }
    /* For large n, up to one value in 32 needs cycle walking. The most need it if n is a power of
     * two plus one. */
    static const unsigned bits[] = {18, 24, 28, 29, 31, 33, 40, 50};
    for (size_t i = 0; i < sizeof bits / sizeof bits[0]; i++)
        for (uint64_t n = BIT(bits[i]) - 1; n <= BIT(bits[i]) + 1; n++) {
            struct shuf__computation computation =
                computation_whole(SHUF_ALGORITHM_PRIMEFOLD, n, 7, n);
            struct shuf__permutation *p = &computation.request.permutation;
            p->count = 20000;
            p->offset = n - p->count;
            computation_check(&computation);
        }
}

static struct shuf__computation random_computation(void)
{
    uint64_t n = random_size(1 << 17);
    struct shuf__computation computation = computation_whole(
        (enum shuf_algorithm)random_below(SHUF_ALGORITHM_COUNT), n, random_u64(), random_u64());
    struct shuf__permutation *p = &computation.request.permutation;
    computation_set_width(&computation, random_below(2) ? 4 : 8);
    p->rows = random_size(1 + 200000 / n / 4);
    p->offset = random_below(n);
    p->stride = random_size(n);
    p->count = random_size(slice_length(n, p->offset, p->stride));
    if (random_below(4) == 0) { /* the part reaches to the end, or for a shard past the end */
        p->offset = random_below(p->stride);
        p->count = (n + p->stride - 1) / p->stride;
    }
    return computation;
}

static void random_slices_match(void **state)
{
    (void)state;
    random_start("random_slices_match");
    for (int i = 0; i < 300; i++) {
        struct shuf__computation computation = random_computation();
        computation_check(&computation);
    }
}

/* ---- Windowed orders, with windows of any size ---- */

enum { VALUES = 300 };

/* A size with an evenly distributed order of magnitude; a third of them are just beside a limit of
 * the words that compute a window. */
static uint64_t random_records(uint64_t most)
{
    static const unsigned bits[] = {8, 15, 16, 21, 31, 32, 38, 50};
    const uint64_t near = (UINT64_C(1) << bits[random_below(8)]) - 3 + random_below(7);
    return random_below(3) == 0 && near <= most ? near : random_size(most);
}

static struct shuf__computation random_computation_windowed(void)
{
    struct shuf__computation c = {.request = {.kind = SHUF__PERMUTATION}};
    struct shuf__permutation *p = &c.request.permutation;
    p->n = 2 + random_records(UINT64_C(1) << (random_below(2) ? 62 : 34));
    const uint64_t most = p->n < 5000 || random_below(4) == 0 ? p->n - 1 : 5000;
    const uint64_t chunks = 2 + random_below(most);
    p->chunk = (p->n - 1) / chunks + 1;
    const uint64_t all = (p->n - 1) / p->chunk + 1;
    p->window = all > 1 ? 1 + random_below(all - 1) : 1;
    p->seed = random_u64();
    p->epoch = random_u64();
    p->rows = 1;
    p->offset = random_below(p->n);
    p->stride = random_below(2) ? 1 : random_size((p->n - p->offset - 1) / VALUES + 1);
    p->count = (p->n - 1 - p->offset) / p->stride + 1;
    p->count = p->count < VALUES ? p->count : VALUES;
    p->algorithm = SHUF_ALGORITHM_PRIMEFOLD;
    c.request.dtype = p->n <= UINT64_C(1) << 32 && random_below(2) ? SHUF_U32 : SHUF_U64;
    return c;
}

/* Begins near an end of a window with another size than most. */
static void move_to_odd_window(struct shuf__permutation *p, const shuf_windowed *w)
{
    const uint64_t last = w->sizes.windows - 1, of_last = w->last_slot / p->window;
    const shuf_window window = shuf_windowed_window(w, random_below(2) ? last : of_last);
    const uint64_t back = random_below(VALUES / 2);
    p->offset = window.first > back ? window.first - back : window.first;
    p->stride = 1;
    p->count = p->n - p->offset < VALUES ? p->n - p->offset : VALUES;
}

static void every_window_matches(void **state)
{
    (void)state;
    random_start("every_window_matches");
    for (int i = 0; i < (TEST_SANITIZED ? 300 : 2000); i++) {
        struct shuf__computation c = random_computation_windowed();
        struct shuf__permutation *p = &c.request.permutation;
        const shuf_windows windows = shuf_windows_of(p->n, p->chunk, p->window);
        if (windows.windows < 2)
            continue;
        const shuf_windowed w = shuf_windowed_make(&windows, shuf__permutation_key(p), p->epoch);
        if (random_below(2))
            move_to_odd_window(p, &w);
        uint64_t fingerprint;
        uint64_t *values = computation_run(&c, &fingerprint);
        for (uint64_t k = 0; k < p->count; k++) {
            const uint64_t expected = shuf_windowed_forward(&w, p->offset + k * p->stride);
            if (values[k] != expected)
                fail_msg("n %" PRIu64 ", chunk %" PRIu64 ", window %" PRIu64 ", seed %" PRIu64
                         ", epoch %" PRIu64 ", position %" PRIu64 ": %" PRIu64
                         ", expected %" PRIu64,
                         p->n, p->chunk, p->window, p->seed, p->epoch, p->offset + k * p->stride,
                         values[k], expected);
        }
        free(values);
    }
}

/* Whole orders by several threads, in two rows. */
static void whole_orders_match(void **state)
{
    (void)state;
    static const uint64_t orders[][3] = {{100003, 100, 50},
                                         {70001, 1, 300},
                                         {65536, 4096, 3},
                                         {300007, 65000, 2},
                                         {99999, 33, 1000}};
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        struct shuf__computation c = {.request = {.kind = SHUF__PERMUTATION, .dtype = SHUF_U32}};
        struct shuf__permutation *p = &c.request.permutation;
        p->n = p->count = orders[i][0];
        p->chunk = orders[i][1];
        p->window = orders[i][2];
        p->rows = 2;
        p->stride = 1;
        p->epoch = UINT64_MAX; /* the second row has epoch 0 */
        const shuf_windows w = shuf_windows_of(p->n, p->chunk, p->window);
        uint64_t fingerprint, *values = computation_run(&c, &fingerprint);
        for (uint64_t row = 0; row < 2; row++) {
            const shuf_windowed order =
                shuf_windowed_make(&w, shuf__permutation_key(p), p->epoch + row);
            for (uint64_t k = 0; k < p->n; k += 1 + k % 61)
                assert_int_equal(values[row * p->n + k], shuf_windowed_forward(&order, k));
        }
        free(values);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slices_at_edges_match),
        cmocka_unit_test(slices_ending_at_tiles_match),
        cmocka_unit_test(padded_shards_match),
        cmocka_unit_test(sizes_near_powers_of_two_match),
        cmocka_unit_test(every_small_size_matches),
        cmocka_unit_test(batches_match),
        cmocka_unit_test(few_rows_match),
        cmocka_unit_test(batches_of_slices_match),
        cmocka_unit_test(slices_beyond_32_bits_match),
        cmocka_unit_test(sizes_near_word_limits_match),
        cmocka_unit_test(random_slices_match),
        cmocka_unit_test(every_window_matches),
        cmocka_unit_test(whole_orders_match),
    };
    return computation_main(argc, argv, tests);
}
