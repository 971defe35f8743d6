/* SPDX-License-Identifier: MIT
 *
 * What a value of a stream must be, by the inline C, one at a time.
 */
#ifndef SHUF__TEST_DRAWS_H
#define SHUF__TEST_DRAWS_H

#include "dtype.h"

#include <stdint.h>

/* One value: everything that decides its bits. */
struct draw {
    enum shuf__distribution distribution;
    shuf_dtype dtype;
    uint64_t seed, stream, index;
    double mean, std;
};

/* The value's bits, widened with zeros. */
uint64_t draw_bits(const struct draw *draw);

/* The number that bits of that type stand for. */
double draw_value(shuf_dtype dtype, uint64_t bits);

unsigned draw_width(shuf_dtype dtype);

/* 0 where there is none of that name. */
enum shuf__distribution draw_distribution(const char *name);

/* SHUF__DTYPES where there is none of that name. */
shuf_dtype draw_dtype(const char *name);

#endif
