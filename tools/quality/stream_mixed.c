/* SPDX-License-Identifier: MIT
 *
 * Two numbers that are made from the same random word. A generator of several types can do this if
 * it counts its numbers and not its words: the upper bits of a double are then those of a float, or
 * a pair of doubles has the radius of a pair of floats. The test counts pairs of values, and of
 * radii, with equal upper bits. The input has the numbers of all types, converted to f64.
 */
#include "stream.h"

#include <math.h>
#include <stdlib.h>

/* A float has 24 bits. The floats of box-muller change a radius by a part of up to 2^-11. */
enum { VALUE_BITS = 24, RADIUS_BITS = 10 };

static int by_size(const void *left, const void *right)
{
    const uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

static uint64_t equal_pairs(uint32_t *key, size_t count)
{
    uint64_t pairs = 0, run = 0;
    qsort(key, count, sizeof *key, by_size);
    for (size_t i = 1; i < count; i++) {
        run = key[i] == key[i - 1] ? run + 1 : 0;
        pairs += run;
    }
    return pairs;
}

static void add_kind(uint32_t *key, size_t keys, uint64_t *count)
{
    count[0] += equal_pairs(key, keys);
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
        key[keys++] = (uint32_t)ldexp(exp(-(x * x + y * y) / 2), RADIUS_BITS);
    }
    add_kind(key, keys, count);
}

static void judge_mixed(const struct shuf__stream_law *law, uint64_t n, const uint64_t *count,
                        const double *sum, struct shuf__findings *findings)
{
    const int bits = law->uniform ? VALUE_BITS : RADIUS_BITS;
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
