/* SPDX-License-Identifier: MIT
 *
 * Windowed orders on the backend of the command line, with windows of any size, compared with the
 * inline C. tests/vectors/windowed.txt compares the inline C with the specification (test_local.c).
 */
#include "support/cmocka_all.h"
#include "support/computation.h"
#include "support/random.h"
#include "support/sanitized.h"

#include "shuf/windowed.h"
#include "slice.h"

#include <inttypes.h>
#include <stdlib.h>

enum { VALUES = 300 };

/* A size with an evenly distributed order of magnitude; a third of them are just beside a limit of
 * the words that compute a window. */
static uint64_t random_records(uint64_t most)
{
    static const unsigned bits[] = {8, 15, 16, 21, 31, 32, 38, 50};
    const uint64_t near = (UINT64_C(1) << bits[random_below(8)]) - 3 + random_below(7);
    return random_below(3) == 0 && near <= most ? near : random_size(most);
}

static struct shuf__computation random_computation(void)
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
        struct shuf__computation c = random_computation();
        struct shuf__permutation *p = &c.request.permutation;
        const shuf_windows sizes = shuf_windows_of(p->n, p->chunk, p->window);
        if (sizes.windows < 2)
            continue;
        const shuf_windowed w = shuf_windowed_make(&sizes, shuf__permutation_key(p), p->epoch);
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
    static const uint64_t sizes[][3] = {{100003, 100, 50},
                                        {70001, 1, 300},
                                        {65536, 4096, 3},
                                        {300007, 65000, 2},
                                        {99999, 33, 1000}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct shuf__computation c = {.request = {.kind = SHUF__PERMUTATION, .dtype = SHUF_U32}};
        struct shuf__permutation *p = &c.request.permutation;
        p->n = p->count = sizes[i][0];
        p->chunk = sizes[i][1];
        p->window = sizes[i][2];
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
        cmocka_unit_test(every_window_matches),
        cmocka_unit_test(whole_orders_match),
    };
    return computation_main(argc, argv, tests);
}
