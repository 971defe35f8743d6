/* SPDX-License-Identifier: MIT
 *
 * Tests of digits by their place. Under any smooth law, digits far enough below the point are
 * uniform, and digits at two places are independent. The tests compare digits of one value, of
 * neighbours, and of values 64 apart, which share a block. They also compare digits with signs.
 * Other tests here find too many round numbers, and too many values that are equal to a near value.
 */
#include "stream.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LEAST = 1000 };

/* ---- Digits at places ------------------------------------------------------------ */

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

/* ---- Round numbers --------------------------------------------------------------- */

enum { LOWEST = -24, HIGHEST = 2, EXPONENTS = HIGHEST - LOWEST + 1, ZEROS = 53, TOP = 8 };
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
    .counts = EXPONENT_WORDS * EXPONENTS,
    .add = add_round,
    .judge = judge_round,
};

/* ---- Ties ------------------------------------------------------------------------ */

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
    double p[TIES * EXPONENTS] = {0};
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
    .counts = TIES * EXPONENTS,
    .add = add_ties,
    .judge = judge_ties,
};

/* ---- Windows --------------------------------------------------------------------- */

enum { TABLE = 4 * SHUF__SUPERBLOCK };

/* The number of equal pairs among 1024 values, by a hash table of earlier values. */
static uint64_t equal_pairs(const double *value, uint32_t *table)
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
        count[0] += equal_pairs(chunk->value + i, table);
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
