/* SPDX-License-Identifier: MIT
 *
 * The quotient of the smaller and the larger number of a pair, where it is small. A generator that
 * multiplies a radius by the sine and the cosine of an angle can have sines on a grid, so that the
 * quotients are multiples of a power of two. The test adds the cosine of 2 pi q 2^k for the
 * quotients q of an octave, with k a little smaller than their last bits.
 */
#include "stream.h"

#include <math.h>

/* Quotients from 2^-(FIRST + OCTAVES) to 2^-FIRST. The last bit of a float is 23 places below its
 * first one. */
enum { FIRST = 8, OCTAVES = 14, SHIFTS = 3, LEAST_SHIFT = 20, LEAST = 50 };

static void add_quotients(const struct shuf__chunk *chunk, uint64_t *count, double *sum)
{
    for (size_t i = 0; i + 1 < chunk->count; i += 2) {
        const double x = fabs(chunk->value[i]), y = fabs(chunk->value[i + 1]),
                     quotient = fmin(x, y) / fmax(x, y);
        if (!(quotient > 0 && quotient < ldexp(1, -FIRST)))
            continue;
        const int octave = -ilogb(quotient) - 1 - FIRST;
        if (octave >= OCTAVES)
            continue;
        count[octave]++;
        for (int s = 0; s < SHIFTS; s++)
            sum[SHIFTS * octave + s] +=
                cos(2 * M_PI * fmod(ldexp(quotient, FIRST + octave + 1 + LEAST_SHIFT + s), 1));
    }
}

static void judge_quotients(const struct shuf__stream_law *law, uint64_t n, const uint64_t *count,
                            const double *sum, struct shuf__findings *findings)
{
    (void)law;
    (void)n;
    for (int octave = 0; octave < OCTAVES; octave++)
        for (int s = 0; s < SHIFTS && count[octave] >= LEAST; s++)
            shuf__find(findings, 0, sum[SHIFTS * octave + s] / (double)count[octave], 0,
                       shuf__normal_p(sum[SHIFTS * octave + s] / sqrt((double)count[octave] / 2)),
                       "below 2^-%d, multiples of 2^-%d", FIRST + octave,
                       FIRST + octave + 1 + LEAST_SHIFT + s);
}

const struct shuf__stream_test shuf__stream_quotients = {
    .name = "quotients",
    .what = "small quotients of a pair, which may lie on a grid",
    .of = SHUF__OF_NORMAL | SHUF__OF_FINE,
    .counts = OCTAVES,
    .sums = SHIFTS * OCTAVES,
    .add = add_quotients,
    .judge = judge_quotients,
};
