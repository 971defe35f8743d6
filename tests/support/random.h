/* SPDX-License-Identifier: MIT
 *
 * Random parameters for tests, repeatable: the seed is printed, and taken from
 * SHUF_TEST_SEED where that is set.
 */
#ifndef SHUF__TEST_RANDOM_H
#define SHUF__TEST_RANDOM_H

#include <stdint.h>

/* Call once, at the start of each test that draws. */
void random_start(const char *test);

uint64_t random_u64(void);

/* 0 .. limit - 1, limit >= 1; the slight bias is of no matter here. */
uint64_t random_below(uint64_t limit);

/* 1 .. limit with its order of magnitude spread evenly, so that small numbers are frequent. */
uint64_t random_size(uint64_t limit);

#endif
