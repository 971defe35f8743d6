/* SPDX-License-Identifier: MIT
 *
 * Tests of the digits of values.
 */
#include "stream.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Last digits ---- */

/* Tests of the last digits. Are the lowest bits of values uniform at each exponent? Do values
 * repeat more often than the type implies? Do the radii of pairs repeat? A generator repeats radii
 * if it makes two values from a uniform number of too few bits. */

/* ---- Lowest bits ---- */

enum { BITS = 256, LEAST_EXPONENT = -24, MOST_EXPONENT = 2 };
enum { EXPONENTS = MOST_EXPONENT - LEAST_EXPONENT + 1 };

static unsigned low_bits(shuf_dtype dtype, double z)
{
    uint64_t bits;
    uint32_t narrow;
    const float single = (float)z;
    memcpy(&bits, &z, sizeof bits);
    memcpy(&narrow, &single, sizeof narrow);
    return (dtype == SHUF_F64 ? (unsigned)bits : narrow) % BITS;
}

/* The exponent with 2^exponent <= |z|. Smaller numbers have the least exponent. */
static int exponent_of(double z)
{
    uint64_t bits;
    memcpy(&bits, &z, sizeof bits);
    const int exponent = (int)(bits >> 52 & 2047) - 1023;
    return exponent < LEAST_EXPONENT  ? LEAST_EXPONENT
           : exponent > MOST_EXPONENT ? MOST_EXPONENT
                                      : exponent;
}

/* A uniform number is a fixed-point number. So its digits have the same places at every exponent.
 */
static unsigned uniform_bits(shuf_dtype dtype, double u)
{
    return (unsigned)(uint64_t)ldexp(u, shuf__dtype_digits(dtype)) % BITS;
}

static void add_low_bits(const struct shuf__chunk *chunk, uint64_t *count, double *sum)
{
    const struct shuf__stream_law *law = chunk->law;
    (void)sum;
    for (size_t i = 0; i < chunk->count; i++) {
        const double x = chunk->value[i];
        if (law->uniform)
            count[uniform_bits(law->dtype, x)]++;
        else
            count[BITS * (exponent_of(x) - LEAST_EXPONENT) + low_bits(law->dtype, x)]++;
    }
}

static void judge_low_bits(const struct shuf__stream_law *law, uint64_t n, const uint64_t *count,
                           const double *sum, struct shuf__findings *findings)
{
    double even[BITS];
    (void)n;
    (void)sum;
    for (unsigned k = 0; k < BITS; k++)
        even[k] = 1.0 / BITS;
    for (int e = 0; e < (law->uniform ? 1 : EXPONENTS); e++) {
        const struct shuf__chi_squared x =
            shuf__pearson_least(count + BITS * e, even, BITS, SHUF__LEAST_EXPECTED);
        if (law->uniform)
            shuf__find_chi_squared(findings, 0, x, "8 bits");
        else
            shuf__find_chi_squared(findings, 0, x, "8 bits, from 2^%d", LEAST_EXPONENT + e);
    }
}

const struct shuf__stream_test shuf__stream_low_bits = {
    .name = "low-bits",
    .what = "the lowest bits, by exponent",
    .of = SHUF__OF_NORMAL | SHUF__OF_UNIFORM | SHUF__OF_FINE,
    .counts = BITS * EXPONENTS,
    .add = add_low_bits,
    .judge = judge_low_bits,
};

/* ---- Repeats ---- */

enum { KEPT = 1 << 20, DIGITS_RADIUS_BITS = 38 };

/* Keeps a key for each value: its bits, or for a radius the number of its part among 2^38 parts of
 * equal probability. A radius from a number of 32 bits or fewer lies in the middle of a part. A key
 * is stored at the place of its value, so the words of two threads can be added. */
static void add_repeats(const struct shuf__chunk *chunk, uint64_t *count, double *sum)
{
    (void)sum;
    for (size_t i = 0; i < chunk->count && chunk->first + i < KEPT; i++)
        memcpy(&count[chunk->first + i], &chunk->value[i], sizeof *count);
    for (size_t i = 0; i + 1 < chunk->count && (chunk->first + i) / 2 < KEPT; i += 2) {
        const double x = chunk->z[i], y = chunk->z[i + 1], above = exp(-(x * x + y * y) / 2);
        count[KEPT + (chunk->first + i) / 2] = (uint64_t)ldexp(above, DIGITS_RADIUS_BITS + 1) + 1;
    }
}

static int digits_by_size(const void *left, const void *right)
{
    const uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

/* The number of equal pairs. */
static uint64_t digits_equal_pairs(const uint64_t *key, size_t count, unsigned drop)
{
    uint64_t *sorted = malloc((count + 1) * sizeof *sorted), pairs = 0, run = 0;
    if (!sorted)
        return 0;
    for (size_t i = 0; i < count; i++)
        sorted[i] = key[i] >> drop;
    qsort(sorted, count, sizeof *sorted, digits_by_size);
    for (size_t i = 1; i < count; i++) {
        run = sorted[i] == sorted[i - 1] ? run + 1 : 0;
        pairs += run;
    }
    free(sorted);
    return pairs;
}

static void judge_repeats(const struct shuf__stream_law *law, uint64_t n, const uint64_t *count,
                          const double *sum, struct shuf__findings *findings)
{
    const size_t values = n < KEPT ? (size_t)n : KEPT;
    const size_t radii = n / 2 < KEPT ? (size_t)(n / 2) : KEPT;
    const double most = 0.5 * (double)values * (double)values * shuf__law_likeness(law);
    const double even = 0.5 * (double)radii * (double)radii / ldexp(1, DIGITS_RADIUS_BITS);
    (void)sum;
    const uint64_t same = digits_equal_pairs(count, values, 0);
    shuf__find(findings, 0, (double)same, most, shuf__poisson_p(same, most), "%zu values", values);
    const uint64_t alike = digits_equal_pairs(count + KEPT, radii, 1);
    shuf__find(findings, 0, (double)alike, even, shuf__poisson_p(alike, even), "%zu radii", radii);
}

const struct shuf__stream_test shuf__stream_repeats = {
    .name = "repeats",
    .what = "equal values among the first, and equal radii of pairs",
    .of = SHUF__OF_NORMAL | SHUF__OF_FINE,
    .counts = 2 * KEPT,
    .add = add_repeats,
    .judge = judge_repeats,
};

/* ---- Mixed types ---- */

/* Two numbers that are made from the same random word. A generator of several types can do this if
 * it counts its numbers and not its words: the upper bits of a double are then those of a float, or
 * a pair of doubles has the radius of a pair of floats. The test counts pairs of values, and of
 * radii, with equal upper bits. The input has the numbers of all types, converted to f64. */

/* A float has 24 bits. The floats of box-muller change a radius by a part of up to 2^-11. */
enum { VALUE_BITS = 24, MIXED_RADIUS_BITS = 10 };

static int mixed_by_size(const void *left, const void *right)
{
    const uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

static uint64_t mixed_equal_pairs(uint32_t *key, size_t count)
{
    uint64_t pairs = 0, run = 0;
    qsort(key, count, sizeof *key, mixed_by_size);
    for (size_t i = 1; i < count; i++) {
        run = key[i] == key[i - 1] ? run + 1 : 0;
        pairs += run;
    }
    return pairs;
}

static void add_kind(uint32_t *key, size_t keys, uint64_t *count)
{
    count[0] += mixed_equal_pairs(key, keys);
    count[1] += keys * (keys - 1) / 2;
}

/* Compares the values of a chunk with each other. */
static void add_mixed(const struct shuf__chunk *chunk, uint64_t *count, double *sum)
{
    uint32_t *key = (uint32_t *)chunk->scratch;
    size_t keys = 0;
    (void)sum;
    if (chunk->law->uniform) {
        for (; keys < chunk->count; keys++)
            key[keys] = (uint32_t)ldexp(chunk->value[keys], VALUE_BITS);
        add_kind(key, keys, count);
        return;
    }
    for (size_t i = 0; i + 1 < chunk->count; i += 2) {
        const double x = chunk->z[i], y = chunk->z[i + 1];
        key[keys++] = (uint32_t)ldexp(exp(-(x * x + y * y) / 2), MIXED_RADIUS_BITS);
    }
    add_kind(key, keys, count);
}

static void judge_mixed(const struct shuf__stream_law *law, uint64_t n, const uint64_t *count,
                        const double *sum, struct shuf__findings *findings)
{
    const int bits = law->uniform ? VALUE_BITS : MIXED_RADIUS_BITS;
    const double expected = ldexp((double)count[1], -bits);
    (void)n;
    (void)sum;
    if (count[1] > 0)
        shuf__find(findings, 0, (double)count[0], expected, shuf__poisson_p(count[0], expected),
                   "%d bits of %s", bits, law->uniform ? "values" : "radii");
}

const struct shuf__stream_test shuf__stream_mixed = {
    .name = "mixed",
    .what = "two numbers, also of two types, from the same random word",
    .of = SHUF__OF_NORMAL | SHUF__OF_UNIFORM | SHUF__OF_FINE,
    .counts = 2,
    .add = add_mixed,
    .judge = judge_mixed,
};

/* ---- Digits by their place ---- */

/* Tests of digits by their place. Under any smooth law, digits far enough below the point are
 * uniform, and digits at two places are independent. The tests compare digits of one value, of
 * neighbours, and of values 64 apart, which share a block. They also compare digits with signs.
 * Other tests here find too many round numbers, and too many values that are equal to a near value.
 */

enum { LEAST = 1000 };

/* ---- Digits at places ---- */

/* A digit has four bits. Digit number a is the first four bits below 2^-(8 + 4a). */
enum { FIRST = 8, DIGIT = 4, PLACES = 10, KINDS = 3, RELATIONS = 3 };
enum { OWN, NEIGHBOUR, APART };
enum { EQUAL = PLACES * PLACES, SIGNED = 2 * EQUAL, RELATION_WORDS = 2 * EQUAL + PLACES };

/* The words of a relation: the counts of equal digits at places (a, b); the counts of opposite
 * digits, whose sum is 15; and a count for each place a. The last one counts the values for which
 * either the digit is 8 or more or the other value is negative, but not both. */
static const char *const relations[RELATIONS] = {"own", "neighbour", "64 apart"};

static unsigned places_of(shuf_dtype dtype)
{
    return dtype == SHUF_F64 ? PLACES : 3; /* an f32 below 8 has the digits at all three places */
}

static void take_digits(double x, unsigned places, uint8_t *digit)
{
    uint64_t all = (uint64_t)(fmin(fabs(x), 7.99) * 0x1p48);
    for (unsigned a = 0; a < places; a++)
        digit[a] = all >> (48 - FIRST - DIGIT * (a + 1)) & 15;
}

static void relate(unsigned relation, unsigned places, const uint8_t *x, const uint8_t *y,
                   bool negative, uint64_t *count)
{
    count += RELATION_WORDS * relation;
    for (unsigned a = 0; a < places; a++) {
        for (unsigned b = relation == OWN ? a + 1 : 0; b < places; b++) {
            count[PLACES * a + b] += x[a] == y[b];
            count[EQUAL + PLACES * a + b] += x[a] + y[b] == 15;
        }
        count[SIGNED + a] += (x[a] >> 3 ^ (unsigned)negative) & 1;
    }
}

static void add_places(const struct shuf__chunk *chunk, uint64_t *count, double *sum)
{
    const unsigned places = places_of(chunk->law->dtype);
    const size_t whole = chunk->count / 128 * 128;
    (void)sum;
    for (size_t i = 0; i < whole; i += 128) {
        uint8_t digit[128][PLACES];
        for (unsigned k = 0; k < 128; k++)
            take_digits(chunk->value[i + k], places, digit[k]);
        for (unsigned k = 0; k < 64; k++) {
            const double *x = chunk->value + i + k;
            relate(OWN, places, digit[k], digit[k], x[0] < 0, count);
            relate(NEIGHBOUR, places, digit[k], digit[k ^ 1], x[k & 1 ? -1 : 1] < 0, count);
            relate(APART, places, digit[k], digit[k + 64], x[64] < 0, count);
        }
    }
    count[RELATION_WORDS * RELATIONS] += whole / 2;
}

/* Two neighbours are compared twice, once from each side, but at different places. */
static void judge_places(const struct shuf__stream_law *law, uint64_t n, const uint64_t *count,
                         const double *sum, struct shuf__findings *findings)
{
    const unsigned places = places_of(law->dtype);
    const double all = (double)count[RELATION_WORDS * RELATIONS];
    (void)n;
    (void)sum;
    for (unsigned r = 0; r < RELATIONS && all >= LEAST; r++, count += RELATION_WORDS) {
        double best = 0, of = 0;
        char where[24] = "";
        for (unsigned k = 0; k < RELATION_WORDS; k++) {
            const unsigned a = k < SIGNED ? k % EQUAL / PLACES : k - SIGNED, b = k % PLACES;
            const bool coin = k >= SIGNED, twice = r == NEIGHBOUR && !coin && a == b;
            const double p = coin ? 0.5 : 1.0 / 16;
            if (a >= places || (!coin && (b >= places || (r == OWN && b <= a))))
                continue;
            const double z =
                ((double)count[k] - all * p) / sqrt(all * p * (1 - p) * (twice ? 2 : 1));
            of++;
            if (fabs(z) <= fabs(best))
                continue;
            best = z;
            snprintf(where, sizeof where, coin ? "2^-%u, sign" : "2^-%u, 2^-%u", FIRST + DIGIT * a,
                     FIRST + DIGIT * b);
        }
        shuf__find(findings, 0, best, 0, -expm1(of * log1p(-fmin(shuf__normal_p(best), 1 - 1e-15))),
                   "%s, %s", relations[r], where);
    }
}

const struct shuf__stream_test shuf__stream_places = {
    .name = "digits",
    .what = "equal and opposite digits, by place, of a value and of close ones",
    .of = SHUF__OF_NORMAL | SHUF__OF_FINE,
    .counts = RELATION_WORDS * RELATIONS + 1,
    .add = add_places,
    .judge = judge_places,
};

/* ---- Round numbers ---- */

enum { LOWEST = -24, HIGHEST = 2, TIE_EXPONENTS = HIGHEST - LOWEST + 1, ZEROS = 53, TOP = 8 };
enum { TOPS = 1 << TOP, EXPONENT_WORDS = ZEROS + TOPS };

/* The words of an exponent: the counts of final zeros; the counts of the digits after the first. */
static void add_round(const struct shuf__chunk *chunk, uint64_t *count, double *sum)
{
    (void)sum;
    const unsigned drop = 53 - shuf__dtype_digits(chunk->law->dtype);
    for (size_t i = 0; i < chunk->count; i++) {
        uint64_t bits;
        memcpy(&bits, &chunk->value[i], sizeof bits);
        const int exponent = (int)(bits >> 52 & 2047) - 1023;
        if (exponent < LOWEST || exponent > HIGHEST)
            continue;
        uint64_t *to = count + EXPONENT_WORDS * (exponent - LOWEST);
        const uint64_t digits = (bits & ((UINT64_C(1) << 52) - 1)) >> drop;
        to[__builtin_ctzll(digits | UINT64_C(1) << (52 - drop))]++;
        to[ZEROS + (bits >> (52 - TOP) & (TOPS - 1))]++;
    }
}

/* Judges the count of multiples of 2^-k, over all exponents. */
static void judge_multiples(const struct shuf__stream_law *law, const uint64_t *count, int k,
                            struct shuf__findings *findings)
{
    const int digits = shuf__dtype_digits(law->dtype) - 1;
    double expected = 0;
    uint64_t found = 0;
    for (int e = LOWEST; e <= HIGHEST; e++) {
        const uint64_t *zeros = count + EXPONENT_WORDS * (e - LOWEST);
        const int least = digits - e - k; /* a multiple has at least so many zeros at its end */
        uint64_t all = 0;
        for (int j = 0; j <= digits; j++) {
            all += zeros[j];
            found += j >= least ? zeros[j] : 0;
        }
        if (least <= digits)
            expected += ldexp((double)all, least > 0 ? -least : 0);
    }
    shuf__find(findings, 0, (double)found, expected, shuf__poisson_p(found, expected),
               "multiples of 2^-%d", k);
}

static void judge_round(const struct shuf__stream_law *law, uint64_t n, const uint64_t *count,
                        const double *sum, struct shuf__findings *findings)
{
    const unsigned digits = shuf__dtype_digits(law->dtype) - 1;
    double half[ZEROS], even[TOPS];
    (void)n;
    (void)sum;
    for (unsigned j = 0; j < ZEROS; j++)
        half[j] = j > digits ? 0 : ldexp(1, -(int)(j < digits ? j + 1 : digits));
    for (unsigned k = 0; k < TOPS; k++)
        even[k] = 1.0 / TOPS;
    for (int e = LOWEST; e <= HIGHEST; e++) {
        const uint64_t *from = count + EXPONENT_WORDS * (e - LOWEST);
        shuf__find_chi_squared(findings, 0,
                               shuf__pearson_least(from, half, digits + 1, SHUF__LEAST_EXPECTED),
                               "zeros at the end, from 2^%d", e);
        if (e <= -12) /* the density of such small numbers is constant to 1e-8 */
            shuf__find_chi_squared(
                findings, 0, shuf__pearson_least(from + ZEROS, even, TOPS, SHUF__LEAST_EXPECTED),
                "first digits, from 2^%d", e);
    }
    for (int k = 8; k <= (law->dtype == SHUF_F64 ? 44 : 16); k += 4)
        judge_multiples(law, count, k, findings);
}

const struct shuf__stream_test shuf__stream_round = {
    .name = "round",
    .what = "zeros at the end, digits of small numbers, multiples of powers of two",
    .of = SHUF__OF_NORMAL | SHUF__OF_FINE,
    .counts = EXPONENT_WORDS * TIE_EXPONENTS,
    .add = add_round,
    .judge = judge_round,
};

/* ---- Ties ---- */

enum { POWER, ODD, EVEN, TIES };

/* The class of a number. Each exponent has three: a power of two, an odd last digit, an even last
 * digit. */
static int tie_of(shuf_dtype dtype, double z, int *exponent)
{
    uint64_t bits;
    memcpy(&bits, &z, sizeof bits);
    *exponent = (int)(bits >> 52 & 2047) - 1023;
    const uint64_t digits = bits << 12 >> (65 - shuf__dtype_digits(dtype));
    return digits == 0 ? POWER : digits & 1 ? ODD : EVEN;
}

/* The least exponent of the test: f16 has subnormal numbers below 2^-14. */
static int lowest_of(shuf_dtype dtype)
{
    return dtype == SHUF_F16 ? -14 : LOWEST;
}

static void add_ties(const struct shuf__chunk *chunk, uint64_t *count, double *sum)
{
    (void)sum;
    for (size_t i = 0; i < chunk->count && chunk->law->rounded; i++) {
        int exponent;
        const int tie = tie_of(chunk->law->dtype, chunk->value[i], &exponent);
        if (exponent >= LOWEST && exponent <= HIGHEST)
            count[TIES * (exponent - LOWEST) + tie]++;
    }
}

static void judge_ties(const struct shuf__stream_law *law, uint64_t n, const uint64_t *count,
                       const double *sum, struct shuf__findings *findings)
{
    double p[TIES * TIE_EXPONENTS] = {0};
    (void)n;
    (void)sum;
    for (size_t i = 0; i < law->nodes && law->rounded; i++) {
        int exponent;
        const int tie = tie_of(law->dtype, law->node[i], &exponent);
        if (exponent >= LOWEST && exponent <= HIGHEST)
            p[TIES * (exponent - LOWEST) + tie] += law->weight[i];
    }
    for (int e = lowest_of(law->dtype); e <= HIGHEST && law->rounded; e++) {
        const size_t at = TIES * (size_t)(e - LOWEST);
        const double all = p[at] + p[at + ODD] + p[at + EVEN];
        const double share[TIES] = {p[at] / all, p[at + ODD] / all, p[at + EVEN] / all};
        shuf__find_chi_squared(findings, 0,
                               shuf__pearson_least(count + at, share, TIES, SHUF__LEAST_EXPECTED),
                               "last digit, from 2^%d", e);
    }
}

const struct shuf__stream_test shuf__stream_ties = {
    .name = "ties",
    .what = "even and odd last digits of f16 and bf16, and powers of two",
    .of = SHUF__OF_NORMAL,
    .counts = TIES * TIE_EXPONENTS,
    .add = add_ties,
    .judge = judge_ties,
};

/* ---- Windows ---- */

enum { TABLE = 4 * SHUF__SUPERBLOCK };

/* The number of equal pairs among 1024 values, by a hash table of earlier values. */
static uint64_t places_equal_pairs(const double *value, uint32_t *table)
{
    uint64_t pairs = 0;
    memset(table, 0, TABLE * sizeof *table);
    for (uint32_t i = 0; i < SHUF__SUPERBLOCK; i++) {
        uint64_t bits;
        memcpy(&bits, &value[i], sizeof bits);
        uint32_t at = (uint32_t)(bits * UINT64_C(0x9E3779B97F4A7C15) >> 52);
        for (; table[at] != 0; at = (at + 1) % TABLE)
            pairs += value[table[at] - 1] == value[i];
        table[at] = i + 1;
    }
    return pairs;
}

static void add_windows(const struct shuf__chunk *chunk, uint64_t *count, double *sum)
{
    uint32_t *table = (uint32_t *)(void *)chunk->scratch;
    (void)sum;
    for (size_t i = 0; i + SHUF__SUPERBLOCK <= chunk->count; i += SHUF__SUPERBLOCK, count[1]++)
        count[0] += places_equal_pairs(chunk->value + i, table);
}

static void judge_windows(const struct shuf__stream_law *law, uint64_t n, const uint64_t *count,
                          const double *sum, struct shuf__findings *findings)
{
    const double pairs = SHUF__SUPERBLOCK * (SHUF__SUPERBLOCK - 1) / 2;
    const double expected = (double)count[1] * pairs * shuf__law_likeness(law);
    (void)n;
    (void)sum;
    if (count[1] > 0)
        shuf__find(findings, 0, (double)count[0], expected, shuf__poisson_p(count[0], expected),
                   "equal among 1024");
}

const struct shuf__stream_test shuf__stream_windows = {
    .name = "windows",
    .what = "equal values among 1024 that follow each other",
    .of = SHUF__OF_NORMAL | SHUF__OF_FINE,
    .counts = 2,
    .add = add_windows,
    .judge = judge_windows,
};
