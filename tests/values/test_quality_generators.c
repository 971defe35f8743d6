/* SPDX-License-Identifier: MIT
 *
 * The fast generators of shuf-quality make the permutations of the inline algorithms.
 */
#include "generator.h"
#include "shuf/domain.h"
#include "shuf/lcg.h"
#include "shuf/philox24.h"
#include "shuf/primefold.h"
#include "support/cmocka_all.h"
#include "support/random.h"

#include <inttypes.h>
#include <stdlib.h>

typedef uint64_t forward_fn(uint64_t n, uint64_t seed, uint64_t epoch, uint64_t position);

static uint64_t primefold(uint64_t n, uint64_t seed, uint64_t epoch, uint64_t position)
{
    const shuf_primefold f = shuf_primefold_make(n, seed, epoch);
    return shuf_primefold_forward(&f, position);
}

static uint64_t philox24(uint64_t n, uint64_t seed, uint64_t epoch, uint64_t position)
{
    const shuf_philox24 f = shuf_philox24_make(n, seed, epoch);
    return shuf_philox24_forward(&f, position);
}

static uint64_t lcg(uint64_t n, uint64_t seed, uint64_t epoch, uint64_t position)
{
    const shuf_lcg f = shuf_lcg_make(n, seed, epoch);
    return shuf_lcg_forward(&f, position);
}

/* Makes the rows of two keys one after the other, because a generator reuses its state. */
static void expect_rows(const char *name, forward_fn *forward, uint32_t n)
{
    const struct shuf__generator *g = shuf__generator_find(name);
    _Alignas(64) unsigned char state[SHUF__GENERATOR_STATE] = {0};
    uint32_t *row = malloc(n * sizeof *row);
    assert_non_null(g);
    assert_non_null(row);
    for (int key = 0; key < 2; key++) {
        const uint64_t seed = random_u64(), epoch = random_u64();
        const uint64_t domain = forward == primefold ? n : UINT64_C(1) << shuf_domain_bits(n);
        uint32_t count = 0;
        g->make(state, n, seed, epoch, g->rounds);
        g->fill(state, n, row);
        for (uint64_t x = 0; x < domain; x++) {
            const uint64_t value = forward(n, seed, epoch, x);
            if (value < n && row[count++] != value)
                fail_msg("%s, n = %" PRIu32 ", seed %" PRIu64 ", epoch %" PRIu64 ": value %" PRIu32
                         " is %" PRIu32 ", expected %" PRIu64,
                         name, n, seed, epoch, count - 1, row[count - 1], value);
        }
    }
    free(row);
}

static void rows_match_algorithms(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {2, 3, 16, 64, 255, 256, 257, 1000, 1021, 4097, 65521, 65537};
    random_start("rows_match_algorithms");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        expect_rows("primefold", primefold, sizes[i]);
        expect_rows("philox24", philox24, sizes[i]);
        expect_rows("lcg", lcg, sizes[i]);
    }
}

static void expect_lookups(const struct shuf__lookups *l, forward_fn *forward, uint64_t n)
{
    enum { COUNT = 50 };
    _Alignas(64) unsigned char state[SHUF__LOOKUPS_STATE] = {0};
    for (int key = 0; key < 2; key++) {
        const uint64_t seed = random_u64(), epoch = random_u64();
        const size_t count = n < COUNT ? (size_t)n : COUNT;
        const uint64_t stride = n <= COUNT ? 1 : 1 + random_below((n - 1) / COUNT);
        uint64_t value[COUNT];
        l->make(state, n, seed, epoch);
        l->values(state, stride, count, value);
        for (size_t i = 0; i < count; i++)
            if (value[i] != forward(n, seed, epoch, i * stride))
                fail_msg("%s, n = %" PRIu64 ", seed %" PRIu64 ", epoch %" PRIu64
                         ", position %" PRIu64 ": %" PRIu64 ", expected %" PRIu64,
                         l->name, n, seed, epoch, i * stride, value[i],
                         forward(n, seed, epoch, i * stride));
    }
}

static void lookups_match_algorithms(void **state)
{
    (void)state;
    forward_fn *const forward[] = {primefold, philox24, lcg};
    random_start("lookups_match_algorithms");
    for (unsigned bits = 1; bits <= 62; bits++)
        for (int i = 0; shuf__lookups[i].name; i++) {
            const uint64_t n = UINT64_C(1) << bits;
            if (n >= 16 || !shuf__lookups[i].compacted)
                expect_lookups(&shuf__lookups[i], forward[i], n);
            if (!shuf__lookups[i].compacted && bits < 62)
                expect_lookups(&shuf__lookups[i], forward[i], n + 1 + random_below(n));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_match_algorithms),
        cmocka_unit_test(lookups_match_algorithms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
