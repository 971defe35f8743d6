/* SPDX-License-Identifier: MIT
 *
 * Lattices. A Hadamard transform of integers gives sums that are all even or all odd, so the sums
 * lie on a lattice. The test rounds the values of a block to multiples of a step, for many steps.
 * Whether a multiple is odd is like a coin toss, and in a good stream the 32 tosses of a block are
 * independent. With a lattice of this step, the tosses of a block are too equal or too unequal. For
 * a rounded law, the probability of odd multiples is computed from the law.
 */
#include "device.h"
#include "stream.h"

#include <gsl/gsl_randist.h>
#include <math.h>
#include <string.h>

enum { LEAST_STEP = 2, MOST_STEP = 30, STEPS = MOST_STEP - LEAST_STEP + 1 };
enum { ODDS = SHUF__BLOCK + 1, LEAST = 1000 };

/* The largest k of steps 2^-k. A step must be at least twice the distance of neighbouring numbers
 * of the type below 8. For types with few digits it must be four times this distance, because fewer
 * values are rounded to a power of two than to its neighbours. */
static unsigned most_step(shuf_dtype dtype)
{
    static const unsigned most[SHUF__DTYPES] = {
        [SHUF_F64] = MOST_STEP, [SHUF_F32] = 20, [SHUF_F16] = 6, [SHUF_BF16] = 3};
    return most[dtype];
}

static unsigned least_step(shuf_dtype dtype)
{
    return dtype == SHUF_F64 || dtype == SHUF_F32 ? 10 : LEAST_STEP;
}

void shuf__stream_lattice_steps(shuf_dtype dtype, unsigned *least, unsigned *most)
{
    *least = least_step(dtype);
    *most = most_step(dtype);
}

/* Adds 1.5 * 2^52. The lowest bits are then the nearest integer. Numbers half-way are rounded up,
 * because the test would notice rounding to even. */
static inline unsigned is_odd(double scaled)
{
    const double moved = scaled + SHUF__HALF_WAY_UP + 0x1.8p52;
    uint64_t bits;
    memcpy(&bits, &moved, sizeof bits);
    return (unsigned)(bits & 1);
}

static void take_odd(const double *z, double scale, unsigned odd[SHUF__BLOCK])
{
    for (unsigned p = 0; p < SHUF__BLOCK; p++)
        for (unsigned b = 0; b < SHUF__BLOCK; b++)
            odd[b] += is_odd(z[SHUF__BLOCK * p + b] * scale);
}

static double chance_of_odd(const struct shuf__stream_law *law, double scale)
{
    double chance = 0;
    for (size_t i = 0; i < law->nodes && law->rounded; i++)
        chance += is_odd(law->node[i] * scale) * law->weight[i];
    return law->rounded ? chance : 0.5;
}

static void add_lattice(const struct shuf__chunk *chunk, uint64_t *count, double *sum)
{
    (void)sum;
    const unsigned least = least_step(chunk->law->dtype), most = most_step(chunk->law->dtype);
    for (size_t i = 0; i < chunk->blocks * SHUF__BLOCK; i += SHUF__SUPERBLOCK)
        for (unsigned k = least; k <= most; k++) {
            unsigned odd[SHUF__BLOCK] = {0};
            take_odd(chunk->by_place + i, ldexp(1, (int)k), odd);
            for (unsigned b = 0; b < SHUF__BLOCK; b++)
                count[ODDS * (k - LEAST_STEP) + odd[b]]++;
        }
    count[ODDS * STEPS] += chunk->blocks;
}

static void judge_lattice(const struct shuf__stream_law *law, uint64_t n, const uint64_t *count,
                          const double *sum, struct shuf__findings *findings)
{
    double coins[ODDS];
    (void)n;
    (void)sum;
    for (unsigned k = least_step(law->dtype);
         k <= most_step(law->dtype) && count[ODDS * STEPS] >= LEAST; k++) {
        const double chance = chance_of_odd(law, ldexp(1, (int)k));
        for (unsigned odd = 0; odd < ODDS; odd++)
            coins[odd] = gsl_ran_binomial_pdf(odd, chance, SHUF__BLOCK);
        shuf__find_chi_squared(
            findings, 0,
            shuf__pearson_least(count + ODDS * (k - LEAST_STEP), coins, ODDS, SHUF__LEAST_EXPECTED),
            "odd multiples of 2^-%u", k);
    }
}

const struct shuf__stream_test shuf__stream_lattice = {
    .name = "lattice",
    .what = "odd multiples of a step among 32 values of a block",
    .of = SHUF__OF_NORMAL,
    .counts = ODDS * STEPS + 1,
    .add = add_lattice,
    .judge = judge_lattice,
};
