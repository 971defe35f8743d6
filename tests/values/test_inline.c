/* SPDX-License-Identifier: MIT
 *
 * The inline C alone: known answers of Philox4x64-10, the words of the key schedule, and the golden
 * tables by a plain loop. Every algorithm must give a permutation.
 */
#include "support/cmocka_all.h"
#include "support/golden.h"
#include "support/random.h"

#include "shuf/algorithm.h"
#include "shuf/fingerprint.h"
#include "shuf/gauss.h"
#include "shuf/lcg.h"
#include "shuf/philox24.h"
#include "shuf/philox4x32.h"
#include "shuf/primefold.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void philox4x32_matches_known_answers(void **state)
{
    (void)state;
    FILE *table = golden_open("philox4x32.txt");
    unsigned rows = 0;
    for (char *line; (line = golden_line(table)) != NULL; rows++) {
        uint32_t w[10];
        char *p = line;
        const int rounds = (int)strtol(p, &p, 10);
        for (int i = 0; i < 10; i++)
            w[i] = (uint32_t)strtoul(p, &p, 16);
        assert_int_equal(*p, '\0');
        const shuf_philox4x32 counter = {{w[0], w[1], w[2], w[3]}};
        const shuf_philox4x32 got = shuf_philox4x32_rounds(counter, w[4], w[5], rounds);
        assert_memory_equal(got.word, w + 6, sizeof got.word);
    }
    fclose(table);
    assert_in_range(rows, 6, 1000);
}

static void philox4x64_matches_known_answers(void **state)
{
    (void)state;
    FILE *table = golden_open("philox4x64.txt");
    unsigned rows = 0;
    for (char *line; (line = golden_line(table)) != NULL; rows++) {
        uint64_t w[10];
        char *p = line;
        for (int i = 0; i < 10; i++)
            w[i] = strtoull(p, &p, 16);
        assert_int_equal(*p, '\0');
        shuf_philox4x64 counter = {{w[0], w[1], w[2], w[3]}};
        shuf_philox4x64 got = shuf_philox4x64_10(counter, w[4], w[5]);
        assert_memory_equal(got.word, w + 6, sizeof got.word);
    }
    fclose(table);
    assert_in_range(rows, 3, 1000);
}

/* The words of Philox4x64-10 with key (7, 0) and counter (2, 3, 1, 0), from philox4x64.txt. Each
 * word gives its low 32 bits first. */
static void key_words_match_philox(void **state)
{
    (void)state;
    static const uint32_t expected[8] = {0x8c6845e8, 0x9a6199f4, 0xb163ce9f, 0x1a11440b,
                                         0xd60673d8, 0x718f5f9a, 0x1163a729, 0x7009fd61};
    uint32_t words[8];
    shuf_key_words(shuf_key_of_seed(7), 3, SHUF_PURPOSE_PHILOX24, 2, words);
    assert_memory_equal(words, expected, sizeof words);
    shuf_philox24 p = shuf_philox24_make(10, 7, 3);
    assert_memory_equal(p.key + 16, expected, sizeof words); /* key[r] = word(r) */
}

static void domain_has_expected_bits(void **state)
{
    (void)state;
    static const struct {
        uint64_t n;
        unsigned bits;
    } rows[] = {{1, 4},
                {2, 4},
                {16, 4},
                {17, 5},
                {32, 5},
                {33, 6},
                {UINT64_C(1) << 32, 32},
                {(UINT64_C(1) << 32) + 1, 33},
                {UINT64_C(1) << 62, 62}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(shuf_domain_bits(rows[i].n), rows[i].bits);
}

/* One of the two bijections of a domain of 2^k values, chosen by its name. */
struct bijection {
    bool is_lcg;
    shuf_philox24 philox24;
    shuf_lcg lcg;
};

static struct bijection make_bijection(const char *name, uint64_t n, uint64_t seed, uint64_t epoch)
{
    struct bijection b = {.is_lcg = strcmp(name, "lcg") == 0};
    if (!b.is_lcg)
        assert_string_equal(name, "philox24");
    b.philox24 = shuf_philox24_make(n, seed, epoch);
    b.lcg = shuf_lcg_make(n, seed, epoch);
    return b;
}

static uint64_t forward(const struct bijection *b, uint64_t x)
{
    return b->is_lcg ? shuf_lcg_forward(&b->lcg, x) : shuf_philox24_forward(&b->philox24, x);
}

static uint64_t inverse(const struct bijection *b, uint64_t y)
{
    return b->is_lcg ? shuf_lcg_inverse(&b->lcg, y) : shuf_philox24_inverse(&b->philox24, y);
}

static void check_golden_primefold(const struct golden *row)
{
    shuf_primefold f = shuf_primefold_make(row->n, row->seed, row->epoch);
    uint64_t sum = 0;
    for (uint64_t x = 0, i = 0; x < row->n; x++) {
        uint64_t value = shuf_primefold_forward(&f, x);
        sum += shuf_fingerprint_term(x, value);
        if (i < row->count && x == golden_position(row, (unsigned)i))
            assert_int_equal(value, row->values[i++]);
    }
    assert_int_equal(sum, row->fingerprint);
}

static void check_golden(const struct golden *row)
{
    if (strcmp(row->algorithm, "primefold") == 0) {
        check_golden_primefold(row);
        return;
    }
    struct bijection b = make_bijection(row->algorithm, row->n, row->seed, row->epoch);
    uint64_t position = 0, sum = 0;
    for (uint64_t x = 0, i = 0; position < row->n; x++) {
        uint64_t value = forward(&b, x);
        if (value >= row->n)
            continue;
        sum += shuf_fingerprint_term(position, value);
        if (i < row->count && position == golden_position(row, (unsigned)i))
            assert_int_equal(value, row->values[i++]);
        position++;
    }
    assert_int_equal(sum, row->fingerprint);
}

static void golden_table_matches(void **state)
{
    (void)state;
    struct golden row;
    unsigned rows = 0;
    FILE *table = golden_open("permute.txt");
    for (; golden_next(table, &row); rows++)
        check_golden(&row);
    fclose(table);
    assert_in_range(rows, 400, 10000);
}

static void check_specification_vector(const char *name, uint64_t n, uint64_t epoch,
                                       const uint64_t *values)
{
    uint64_t kept = 0;
    if (strcmp(name, "primefold") == 0) {
        const shuf_primefold f = shuf_primefold_make(n, 7, epoch);
        for (uint64_t i = 0; i < n; i++)
            assert_int_equal(shuf_primefold_forward(&f, i), values[i]);
        return;
    }
    struct bijection b = make_bijection(name, n, 7, epoch);
    for (uint64_t x = 0; kept < n; x++)
        if (forward(&b, x) < n)
            assert_int_equal(forward(&b, x), values[kept++]);
}

/* The vectors that docs/spec.md prints, for seed 7. */
static void specification_vectors_match(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint64_t n, epoch;
        uint64_t values[17];
    } rows[] = {
        {"primefold", 10, 0, {4, 0, 5, 1, 2, 9, 6, 8, 7, 3}},
        {"philox24", 10, 0, {5, 9, 8, 0, 1, 6, 2, 4, 3, 7}},
        {"philox24", 17, 3, {15, 14, 2, 7, 11, 3, 16, 0, 12, 10, 6, 9, 13, 1, 5, 4, 8}},
        {"lcg", 10, 0, {1, 8, 6, 4, 2, 9, 0, 7, 5, 3}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        check_specification_vector(rows[i].name, rows[i].n, rows[i].epoch, rows[i].values);
}

/* A value that would round to the limit 2^-12 in f32 is replaced. Its replacement is the nearest
 * number below the limit. */
static void gauss_value_on_the_limit_is_replaced(void **state)
{
    (void)state;
    const shuf_gauss g = shuf_gauss_make(7, 0, 0, 1);
    shuf_gauss_block b = {.number = 5};
    for (unsigned p = 0; p < SHUF_GAUSS_BLOCK; p++) {
        b.s[p] = 143;
        b.word[p] = (1u << 18) - 2;
        assert_true(shuf_gauss_block_f32(&g, &b, p) == 0x1p-12f - 0x1p-36f);
        b.word[p] |= 1u << 31;
        assert_true(shuf_gauss_block_f32(&g, &b, p) == -(0x1p-12f - 0x1p-36f));
    }
}

static void every_domain_is_permuted(void **state)
{
    (void)state;
    random_start("every_domain_is_permuted");
    static const char *const names[] = {"philox24", "lcg"};
    for (unsigned bits = 4; bits <= 18; bits++)
        for (int a = 0; a < 2; a++) {
            uint64_t n = UINT64_C(1) << bits;
            struct bijection b = make_bijection(names[a], n, random_u64(), random_u64());
            unsigned char *seen = calloc(1, n);
            assert_non_null(seen);
            for (uint64_t x = 0; x < n; x++) {
                uint64_t y = forward(&b, x);
                assert_in_range(y, 0, n - 1);
                assert_int_equal(seen[y]++, 0);
                assert_int_equal(inverse(&b, y), x);
            }
            free(seen);
        }
}

/* A wide domain is too large for a test of every input. Random inputs have images inside the
 * domain, and the inverse returns the inputs. */
static void wide_domains_are_inverted(void **state)
{
    (void)state;
    random_start("wide_domains_are_inverted");
    static const char *const names[] = {"philox24", "lcg"};
    for (unsigned bits = 19; bits <= 62; bits++)
        for (int i = 0; i < 2000; i++) {
            uint64_t n = UINT64_C(1) << bits;
            struct bijection b = make_bijection(names[i % 2], n, random_u64(), random_u64());
            uint64_t x = random_below(n), y = forward(&b, x);
            assert_in_range(y, 0, n - 1);
            assert_int_not_equal(forward(&b, x ^ 1), y);
            assert_int_equal(inverse(&b, y), x);
        }
}

/* Seed and epoch are different words of the key: seed 7 with epoch 1 is not seed 8 with epoch 0. */
static void seed_and_epoch_are_independent(void **state)
{
    (void)state;
    shuf_philox24 a = shuf_philox24_make(1000, 7, 1), b = shuf_philox24_make(1000, 8, 0),
                  c = shuf_philox24_make(1000, 7, 1 + (UINT64_C(1) << 32));
    assert_memory_not_equal(a.key, b.key, sizeof a.key);
    assert_memory_not_equal(a.key, c.key, sizeof a.key);
}

static void fingerprint_depends_on_order(void **state)
{
    (void)state;
    assert_int_not_equal(shuf_fingerprint_term(0, 1) + shuf_fingerprint_term(1, 2),
                         shuf_fingerprint_term(0, 2) + shuf_fingerprint_term(1, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(philox4x64_matches_known_answers),
        cmocka_unit_test(philox4x32_matches_known_answers),
        cmocka_unit_test(key_words_match_philox),
        cmocka_unit_test(domain_has_expected_bits),
        cmocka_unit_test(golden_table_matches),
        cmocka_unit_test(specification_vectors_match),
        cmocka_unit_test(gauss_value_on_the_limit_is_replaced),
        cmocka_unit_test(every_domain_is_permuted),
        cmocka_unit_test(wide_domains_are_inverted),
        cmocka_unit_test(seed_and_epoch_are_independent),
        cmocka_unit_test(fingerprint_depends_on_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
