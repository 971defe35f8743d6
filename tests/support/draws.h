/* SPDX-License-Identifier: MIT
 *
 * What a value of a stream must be, by the inline C, one at a time.
 */
#ifndef SHUF__TEST_DRAWS_H
#define SHUF__TEST_DRAWS_H

#include "shuf/distribution.h"

#include <stdint.h>

/* One value: everything that decides its bits. */
struct draw {
    enum shuf__distribution distribution;
    enum shuf_number number;
    uint64_t seed, stream, index;
    double mean, std;
};

/* The value's bits, widened with zeros. */
uint64_t draw_bits(const struct draw *draw);

/* The number that bits of that type stand for. */
double draw_value(enum shuf_number number, uint64_t bits);

unsigned draw_width(enum shuf_number number);

/* 0 where there is none of that name. */
enum shuf__distribution draw_distribution(const char *name);

/* SHUF_NUMBER_COUNT where there is none of that name. */
enum shuf_number draw_number(const char *name);

#endif
