/* SPDX-License-Identifier: MIT
 *
 * The expected values of streams, by the inline C, one at a time.
 */
#ifndef SHUF__TEST_DRAWS_H
#define SHUF__TEST_DRAWS_H

#include "dtype.h"

#include <stdint.h>

/* The parameters that decide the bits of one value. */
struct draw {
    enum shuf__distribution distribution;
    shuf_dtype dtype;
    uint64_t seed, stream, index;
    double mean, std;
    uint64_t bound;
};

/* The bits of the value, extended with zeros to 64 bits. */
uint64_t draw_bits(const struct draw *draw);

/* The number that these bits represent in that type. */
double draw_value(shuf_dtype dtype, uint64_t bits);

unsigned draw_width(shuf_dtype dtype);

/* Parameters that the distribution allows: a mean of `mean` or, of a Bernoulli stream, 0.3. A
 * quarter of the words do not decide an integer of 32 bits below the bound. */
void draw_parameters(unsigned distribution, double mean, double *of_mean, double *of_std,
                     uint64_t *bound);

/* 0 if there is no such name. */
enum shuf__distribution draw_distribution(const char *name);

/* SHUF__DTYPES if there is no such name. */
shuf_dtype draw_dtype(const char *name);

#endif
