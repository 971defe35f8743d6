/* SPDX-License-Identifier: MIT
 *
 * The inline C alone: known answers of Philox4x64-10, the words of the key schedule, and the golden
 * tables by a plain loop. Every algorithm must give a permutation.
 */
#include "shuf/algorithm.h"
#include "shuf/fingerprint.h"
#include "shuf/gauss.h"
#include "shuf/lcg.h"
#include "shuf/philox24.h"
#include "shuf/philox4x32.h"
#include "shuf/primefold.h"
#include "support/cmocka_all.h"
#include "support/golden.h"
#include "support/random.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static void check_philox4x32(const uint64_t w[10], int rounds)
{
    const shuf_philox4x32 counter = {
        {(uint32_t)w[0], (uint32_t)w[1], (uint32_t)w[2], (uint32_t)w[3]}};
    const shuf_philox4x32 got =
        shuf_philox4x32_rounds(counter, (uint32_t)w[4], (uint32_t)w[5], rounds);
    for (int i = 0; i < 4; i++)
        assert_int_equal(got.word[i], w[6 + i]);
}

static void check_philox4x64(const uint64_t w[10], int rounds)
{
    const shuf_philox4x64 counter = {{w[0], w[1], w[2], w[3]}};
    const shuf_philox4x64 got = shuf_philox4x64_10(counter, w[4], w[5]);
    assert_int_equal(rounds, 10);
    assert_memory_equal(got.word, w + 6, sizeof got.word);
}

static void philox_matches_known_answers(void **state)
{
    (void)state;
    FILE *table = golden_open("philox.txt");
    unsigned narrow = 0, wide = 0;
    for (char *line; (line = golden_line(table)) != NULL;) {
        uint64_t w[10];
        char *p = line;
        const bool is_narrow = strtol(p, &p, 10) == 32;
        const int rounds = (int)strtol(p, &p, 10);
        for (int i = 0; i < 10; i++)
            w[i] = strtoull(p, &p, 16);
        assert_int_equal(*p, '\0');
        (is_narrow ? check_philox4x32 : check_philox4x64)(w, rounds);
        (*(is_narrow ? &narrow : &wide))++;
    }
    fclose(table);
    assert_in_range(narrow, 6, 1000);
    assert_in_range(wide, 3, 1000);
}

/* The words of Philox4x64-10 with key (7, 0) and counter (2, 3, 1, 0), from philox.txt. Each
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

/* ---- primefold: positions against the table, inverses, folds, multipliers, primes ---- */

#define BIT(k) (UINT64_C(1) << (k))

static shuf_primefold make_with_inverse(uint64_t n, uint64_t seed, uint64_t epoch)
{
    shuf_primefold f = shuf_primefold_make(n, seed, epoch);
    shuf_primefold_make_inverse(&f);
    return f;
}

static void golden_positions_match(void **state)
{
    (void)state;
    struct golden_positions row;
    unsigned rows = 0;
    FILE *table = golden_open("primefold.txt");
    for (; golden_next_positions(table, &row); rows++) {
        shuf_primefold f = make_with_inverse(row.n, row.seed, row.epoch);
        for (unsigned i = 0; i < row.count; i++) {
            assert_int_equal(shuf_primefold_forward(&f, row.position[i]), row.value[i]);
            assert_int_equal(shuf_primefold_inverse(&f, row.value[i]), row.position[i]);
        }
    }
    fclose(table);
    assert_in_range(rows, 300, 10000);
}

static void check_inverse(uint64_t n)
{
    shuf_primefold f = make_with_inverse(n, random_u64(), random_u64());
    for (int i = 0; i < 100; i++) {
        const uint64_t x = i == 0 ? 0 : i == 1 ? n - 1 : random_below(n);
        const uint64_t value = shuf_primefold_forward(&f, x),
                       position = shuf_primefold_inverse(&f, x);
        assert_in_range(value, 0, n - 1);
        assert_in_range(position, 0, n - 1);
        assert_int_equal(shuf_primefold_inverse(&f, value), x);
        assert_int_equal(shuf_primefold_forward(&f, position), x);
    }
}

static void inverse_restores_positions(void **state)
{
    (void)state;
    random_start("inverse_restores_positions");
    for (unsigned k = 1; k <= 62; k++) {
        check_inverse(BIT(k) - 1);
        check_inverse(BIT(k));
        if (k < 62)
            check_inverse(BIT(k) + 1);
    }
    for (int i = 0; i < 200; i++)
        check_inverse(random_size(BIT(62)));
}

static void inverse_needs_no_preparation(void **state)
{
    (void)state;
    random_start("inverse_needs_no_preparation");
    for (unsigned k = 1; k <= 62; k++) {
        const shuf_primefold f = shuf_primefold_make(BIT(k), random_u64(), random_u64());
        const uint64_t x = random_below(BIT(k));
        assert_int_equal(shuf_primefold_inverse(&f, shuf_primefold_forward(&f, x)), x);
    }
}

static void check_permutation(uint64_t n)
{
    static unsigned char seen[BIT(17)];
    memset(seen, 0, n);
    shuf_primefold f = make_with_inverse(n, random_u64(), random_u64());
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t value = shuf_primefold_forward(&f, i);
        assert_in_range(value, 0, n - 1);
        assert_int_equal(seen[value]++, 0);
        assert_int_equal(shuf_primefold_inverse(&f, value), i);
    }
}

static void small_sizes_are_permuted(void **state)
{
    (void)state;
    random_start("small_sizes_are_permuted");
    for (uint64_t n = 1; n <= 1200; n++)
        for (int round = 0; round < (n <= 300 ? 8 : 2); round++)
            check_permutation(n);
    for (uint64_t n = 1201; n < BIT(16); n += 1 + random_below(900))
        check_permutation(n);
    for (uint64_t n = 65519; n <= 65538; n++)
        check_permutation(n);
    check_permutation(BIT(16) + 1017);
    check_permutation(BIT(16) + 1018);
    check_permutation(BIT(17) - 1);
}

/* ---- The parts of a round ---- */

static void shape_has_expected_maps(void **state)
{
    (void)state;
    static const struct {
        uint64_t n, p;
        unsigned maps, shift;
    } rows[] = {{256, 0, 0, 0},
                {257, 257, 10, 2},
                {509, 509, 10, 2},
                {510, 521, 9, 2},
                {1021, 1021, 9, 2},
                {1022, 1031, 8, 2},
                {8191, 8191, 8, 2},
                {8192, 8209, 7, 2},
                {65521, 65521, 7, 2},
                {65522, 65537, 8, 6},
                {65536, 65537, 8, 6},
                {BIT(17), BIT(17) + 29, 8, 6},
                {BIT(17) + 1, BIT(17) + 29, 8, 6},
                {BIT(20) + 1, BIT(20) + 7, 8, 6},
                /* the most numbers after the last whole block */
                {BIT(20) + 1023, BIT(20) + 1023, 8, 6},
                {BIT(20) + 1024, BIT(20) + BIT(15) + 7, 8, 6},
                {BIT(21), BIT(21) + 17, 8, 6},
                {BIT(21) + 1, BIT(21) + 17, 7, 8},
                {BIT(28), BIT(28) + 3, 7, 8},
                {BIT(28) + 1, BIT(28) + 3, 7, 8},
                {BIT(28) + 997, BIT(28) + 997, 7, 8},
                {BIT(28) + 998, BIT(28) + BIT(21) + 1, 7, 8},
                {BIT(30) + 1, BIT(30) + 3, 7, 8},
                {BIT(62), BIT(62) + 135, 7, 8}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const shuf_primefold_shape s = shuf_primefold_shape_of(rows[i].n);
        assert_int_equal(s.p, rows[i].p);
        assert_int_equal(s.maps, rows[i].maps);
        assert_int_equal(s.shift, rows[i].shift);
    }
}

/* Finds the size of the block in which x is folded. Tries every size, from the largest down. */
static uint64_t block_of(const shuf_primefold_shape *s, uint64_t x)
{
    const uint64_t most = BIT(s->bits - s->shift);
    if (s->n > SHUF_PRIMEFOLD_SMALL)
        return x < s->p / most * most ? most : 1;
    for (uint64_t block = most;; block /= 2)
        if (x / block < s->p / block) /* the whole block is below p */
            return block;
}

static void check_folds(uint64_t n)
{
    static unsigned char seen[BIT(18)];
    shuf_primefold f = make_with_inverse(n, random_u64(), random_u64());
    memset(seen, 0, f.shape.p);
    for (uint64_t x = 0; x < f.shape.p; x++) {
        const uint64_t y = shuf_primefold_fold(&f, 1, x), block = block_of(&f.shape, x);
        assert_int_equal(y, x ^ (x >> f.shape.shift ^ f.map[1].fold) % block);
        assert_in_range(y, 0, f.shape.p - 1);
        assert_int_equal(seen[y]++, 0);
        assert_int_equal(block_of(&f.shape, y), block);
        assert_int_equal(shuf_primefold_unfold(&f, 1, y), x);
    }
}

static void folds_permute(void **state)
{
    (void)state;
    random_start("folds_permute");
    for (uint64_t n = 257; n <= 1200; n++)
        check_folds(n);
    for (uint64_t n = 1201; n < BIT(17); n += 1 + random_below(2000))
        check_folds(n);
    check_folds(65521);
    check_folds(65522);
    check_folds(BIT(16) + 1017); /* the most numbers after the last whole block */
    check_folds(BIT(16) + 1018);
    check_folds(BIT(17) + 999);
}

/* The definition of a weak multiplier m modulo p: m or -m is a power of two, or the product of m
 * and a power of two is 1 or -1. */
static bool is_weak(uint64_t m, uint64_t p)
{
    for (uint64_t power = 1; power < p; power *= 2) {
        const uint64_t product = shuf__multiply_mod(m, power, p);
        if (m == power || m == p - power || product == 1 || product == p - 1)
            return true;
    }
    return false;
}

static void check_multipliers(uint64_t n, uint64_t epoch, unsigned *first_weak, unsigned *differing)
{
    const shuf_primefold f = shuf_primefold_make(n, 7, epoch);
    uint32_t word[SHUF_PRIMEFOLD_WORDS];
    for (unsigned block = 0; block < shuf_primefold_key_blocks(&f.shape); block++)
        shuf_key_words_for(n, shuf_key_of_seed(7), epoch, SHUF_PURPOSE_PRIMEFOLD, block,
                           word + 8 * block);
    assert_int_equal(f.addend, shuf_primefold_addend_of(&f.shape, word));
    for (unsigned r = 0; r < f.shape.maps; r++) {
        const shuf_primefold_map drawn = shuf_primefold_map_of(&f.shape, word, r);
        uint64_t m = drawn.multiplier;
        *first_weak += r == 0 && is_weak(m, f.shape.p);
        while (r > 0 && is_weak(m, f.shape.p))
            m = shuf__multiply_mod(3, m, f.shape.p);
        *differing += m != drawn.multiplier;
        assert_int_equal(f.map[r].multiplier, m);
        assert_int_equal(f.map[r].fold, drawn.fold);
    }
}

static void weak_multipliers_are_tripled(void **state)
{
    (void)state;
    unsigned first_weak = 0, differing = 0;
    for (uint64_t n = 257; n <= 1200; n++)
        for (uint64_t epoch = 0; epoch < 20; epoch++)
            check_multipliers(n, epoch, &first_weak, &differing);
    for (unsigned k = 11; k <= 62; k++)
        check_multipliers(BIT(k), k, &first_weak, &differing);
    assert_in_range(first_weak, 500, 5000);
    assert_in_range(differing, 5000, 50000);
}

/* Finds weak multipliers at special primes. At p = 2^31 - 1 the powers of two repeat after 31
 * steps. At p = 65537 the inverse of a power of two is minus a power of two. */
static void weak_multipliers_are_recognized(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {257,   337,         1093,        8191,   65521,
                                     65537, BIT(31) - 1, BIT(40) - 1, BIT(62)};
    random_start("weak_multipliers_are_recognized");
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const shuf_primefold_shape s = shuf_primefold_shape_of(sizes[i]);
        for (unsigned k = 0; k < 1000; k++) {
            shuf_primefold_map map[2] = {{.multiplier = 1 + random_below(s.p - 1)}};
            uint64_t inverse = 1; /* the inverse of the power of two */
            for (unsigned j = 0; j < k % s.bits; j++)
                inverse = inverse / 2 + (inverse % 2 ? (s.p + 1) / 2 : 0);
            const uint64_t m = k & 64 ? inverse : BIT(k % s.bits);
            map[1].multiplier = k & 128 ? s.p - m : m;
            assert_int_equal(shuf__primefold_weak(&s, map, 2),
                             2 | (is_weak(map[0].multiplier, s.p) ? 1 : 0));
        }
    }
}

/* Returns how often a weak multiplier must be tripled until it is not weak, at most. */
static unsigned most_triples(uint64_t p)
{
    const shuf_primefold_shape s = shuf_primefold_shape_of(p);
    uint64_t inverse = 1; /* the inverse of the power of two */
    unsigned most = 0;
    for (uint64_t power = 1; power < p; power *= 2) {
        for (unsigned k = 0; k < 4; k++) {
            const uint64_t m = k & 1 ? inverse : power;
            shuf_primefold_map map = {k & 2 ? p - m : m, 0};
            unsigned times = 0;
            for (; shuf__primefold_weak(&s, &map, 1) && times < 100; times++)
                map.multiplier = shuf__primefold_tripled(map.multiplier, p);
            most = times > most ? times : most;
        }
        inverse = inverse / 2 + (inverse % 2 ? (p + 1) / 2 : 0);
    }
    return most;
}

/* Tripling makes every weak multiplier strong after a few steps, at every small prime and at some
 * large ones. */
static void few_triplings_are_enough(void **state)
{
    (void)state;
    for (uint64_t p = 257; p <= SHUF_PRIMEFOLD_SMALL; p = shuf_prime_from(p + 1))
        assert_in_range(most_triples(p), 1, 3);
    for (unsigned k = 16; k <= 62; k++)
        for (uint64_t n = BIT(k) - 3; n <= BIT(k) + 3 && n <= BIT(62); n += 3)
            assert_in_range(most_triples(shuf_primefold_shape_of(n).p), 1, 3);
    const uint64_t p = BIT(62) + 135; /* the largest p */
    assert_int_equal(shuf__primefold_tripled(p - 1, p), p - 3);
    assert_int_equal(shuf__primefold_tripled(p / 2, p), shuf__multiply_mod(3, p / 2, p));
}

/* Permutations of different keys are unrelated. So are those of n and n + 1, even if both use the
 * same prime. */
static void keys_are_unrelated(void **state)
{
    (void)state;
    static const uint64_t key[][3] = {
        {1000, 7, 0}, {1001, 7, 0}, {1000, 8, 0}, {1000, 7, 1}, {1000, 7, BIT(32)}};
    enum { KEYS = sizeof key / sizeof key[0], VALUES = 1000 };
    uint16_t value[KEYS][VALUES];
    for (int k = 0; k < KEYS; k++) {
        shuf_primefold f = shuf_primefold_make(key[k][0], key[k][1], key[k][2]);
        for (unsigned i = 0; i < VALUES; i++)
            value[k][i] = (uint16_t)shuf_primefold_forward(&f, i);
    }
    for (int a = 0; a < KEYS; a++)
        for (int b = 0; b < a; b++) {
            int same = 0;
            for (int i = 0; i < VALUES; i++)
                same += value[a][i] == value[b][i];
            assert_in_range(same, 0, 20); /* one is expected; more than 20 do not occur by chance */
        }
}

/* ---- The prime ---- */

static bool has_no_divisor(uint64_t p)
{
    for (uint64_t d = 2; d * d <= p; d++)
        if (p % d == 0)
            return false;
    return p > 1;
}

static void primes_match_trial_division(void **state)
{
    (void)state;
    random_start("primes_match_trial_division");
    for (uint64_t p = 0; p < 100000; p++)
        assert_int_equal(shuf_is_prime(p), has_no_divisor(p));
    for (int i = 0; i < 1000; i++) {
        const uint64_t p = random_below(BIT(34)) | 1;
        assert_int_equal(shuf_is_prime(p), has_no_divisor(p));
    }
}

/* Composite numbers that simple tests take for primes. Three Carmichael numbers. The least strong
 * pseudoprimes to the first bases, up to 341550071728321 from Jaeschke (Math. Comp. 61, 1993), the
 * last from Zhang (Math. Comp. 70, 2001). The squares of the two known Wieferich primes, and of two
 * large primes. */
static void known_primes_are_recognized(void **state)
{
    (void)state;
    static const uint64_t primes[] = {BIT(31) - 1,  BIT(32) + 15,  BIT(61) - 1,
                                      BIT(62) - 57, BIT(62) + 135, UINT64_C(18446744073709551557)};
    static const uint64_t composites[] = {561,
                                          41041,
                                          825265,
                                          2047,
                                          1373653,
                                          25326001,
                                          3215031751,
                                          UINT64_C(2152302898747),
                                          UINT64_C(3474749660383),
                                          UINT64_C(341550071728321),
                                          UINT64_C(3825123056546413051),
                                          1093 * 1093,
                                          3511 * 3511,
                                          (BIT(31) - 1) * (BIT(31) - 1),
                                          UINT64_C(4294967291) * UINT64_C(4294967291),
                                          BIT(62) + 1,
                                          UINT64_MAX};
    for (size_t i = 0; i < sizeof primes / sizeof primes[0]; i++)
        assert_true(shuf_is_prime(primes[i]));
    for (size_t i = 0; i < sizeof composites / sizeof composites[0]; i++)
        assert_false(shuf_is_prime(composites[i]));
}

static void next_prime_is_found(void **state)
{
    (void)state;
    for (uint64_t n = 1, p = 2; n < 20000; n++) {
        if (p < n)
            for (p = n; !has_no_divisor(p);)
                p++;
        assert_int_equal(shuf_prime_from(n), p);
    }
    assert_int_equal(shuf_prime_from(BIT(32)), BIT(32) + 15);
    assert_int_equal(shuf_prime_from(BIT(62)), BIT(62) + 135);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(philox_matches_known_answers),
        cmocka_unit_test(key_words_match_philox),
        cmocka_unit_test(domain_has_expected_bits),
        cmocka_unit_test(golden_table_matches),
        cmocka_unit_test(specification_vectors_match),
        cmocka_unit_test(gauss_value_on_the_limit_is_replaced),
        cmocka_unit_test(every_domain_is_permuted),
        cmocka_unit_test(wide_domains_are_inverted),
        cmocka_unit_test(seed_and_epoch_are_independent),
        cmocka_unit_test(fingerprint_depends_on_order),
        cmocka_unit_test(golden_positions_match),
        cmocka_unit_test(inverse_restores_positions),
        cmocka_unit_test(inverse_needs_no_preparation),
        cmocka_unit_test(small_sizes_are_permuted),
        cmocka_unit_test(shape_has_expected_maps),
        cmocka_unit_test(folds_permute),
        cmocka_unit_test(weak_multipliers_are_tripled),
        cmocka_unit_test(weak_multipliers_are_recognized),
        cmocka_unit_test(few_triplings_are_enough),
        cmocka_unit_test(keys_are_unrelated),
        cmocka_unit_test(primes_match_trial_division),
        cmocka_unit_test(known_primes_are_recognized),
        cmocka_unit_test(next_prime_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
