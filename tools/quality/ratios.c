/* SPDX-License-Identifier: MIT
 *
 * Three values at a time modulo a prime p: a = f(i), b = f(i + d) and c = f(i + 2d). The test
 * counts a - 2b + c, and (b - a) / (c - a). A map x -> m x + k of the values does not change the
 * ratio (b - a) / (c - a). A generator with few maps makes some of these numbers too often.
 * Different rows have different distances.
 *
 * The law of one triple is exact. The triples of a row share values, and are draws without
 * replacement. This changes the sum of squares by a part of order 1/n. If n is small and p clearly
 * above n, the change is too large, so n must be at least 96.
 */
#include "test.h"

#include "shuf/prime.h"

#include <stdlib.h>

enum { CELLS = 1024, DISTANCES = 8 };
enum { PRIMES, ROWS, SECOND, RATIO = SECOND + CELLS, WORDS = RATIO + CELLS };

size_t shuf__ratios_words(uint32_t n)
{
    (void)n;
    return WORDS;
}

static uint32_t prime_of(uint32_t n, uint64_t modulus)
{
    const uint64_t from = modulus == 0 || modulus >= CELLS - 20 ? n : modulus;
    return (uint32_t)shuf_prime_from(from);
}

/* Makes the inverses: inverse[x] * x = 1 mod p. */
static void invert(uint32_t p, uint32_t inverse[CELLS])
{
    inverse[0] = 0;
    inverse[1] = 1;
    for (uint32_t x = 2; x < p; x++)
        inverse[x] = (uint32_t)((uint64_t)(p - p / x) * inverse[p % x] % p);
}

static void add_distance(const uint32_t *row, uint32_t n, uint32_t d, uint32_t p,
                         const uint32_t *inverse, uint64_t *words)
{
    for (uint32_t i = 0; i + 2 * d < n; i++) {
        const uint32_t a = row[i], b = row[i + d], c = row[i + 2 * d];
        const uint32_t x = a < b ? b - a : b + p - a, y = a < c ? c - a : c + p - a;
        words[SECOND + (y + 2 * (p - x)) % p]++;
        words[RATIO + x * inverse[y] % p]++;
    }
}

void shuf__ratios_add(const struct shuf__rows *rows, uint64_t *words)
{
    const uint32_t n = rows->n, p = prime_of(n, rows->modulus), most = (n - 1) / 4;
    uint32_t inverse[CELLS];
    invert(p, inverse);
    for (size_t r = 0; r < rows->count; r++) {
        for (uint32_t k = 0; k < DISTANCES; k++)
            add_distance(rows->row + r * n, n,
                         1 + (uint32_t)(((rows->first + r) * DISTANCES + k) % most), p, inverse,
                         words);
        words[PRIMES] += p;
        words[ROWS]++;
    }
}

/* For all differences x = b - a and y = c - a, as integers, counts the possible values of a. */
static void make_laws(uint32_t n, uint32_t p, double second[CELLS], double ratio[CELLS])
{
    const int64_t size = n, all = size * (size - 1) * (size - 2);
    uint32_t inverse[CELLS];
    invert(p, inverse);
    for (uint32_t k = 0; k < CELLS; k++)
        second[k] = ratio[k] = 0;
    for (int64_t x = 1 - size; x < size; x++)
        for (int64_t y = 1 - size; y < size; y++) {
            const int64_t high = x > y ? x : y, low = x < y ? x : y;
            const int64_t ways = size - (high > 0 ? high : 0) + (low < 0 ? low : 0);
            if (x == 0 || y == 0 || x == y || ways <= 0)
                continue;
            const uint32_t mod_x = (uint32_t)((x + 2 * (int64_t)p) % p);
            const uint32_t mod_y = (uint32_t)((y + 2 * (int64_t)p) % p);
            second[(mod_y + 2 * (p - mod_x)) % p] += (double)ways / (double)all;
            ratio[mod_x * inverse[mod_y] % p] += (double)ways / (double)all;
        }
}

void shuf__ratios_judge(uint32_t n, const uint64_t *words, struct shuf__findings *findings)
{
    const uint32_t p = (uint32_t)(words[PRIMES] / words[ROWS]);
    double second[CELLS], ratio[CELLS];
    make_laws(n, p, second, ratio);
    shuf__find_chi_squared(findings, n,
                           shuf__pearson_least(words + SECOND, second, p, SHUF__LEAST_EXPECTED),
                           "second differences");
    shuf__find_chi_squared(
        findings, n, shuf__pearson_least(words + RATIO, ratio, p, SHUF__LEAST_EXPECTED), "ratios");
}
