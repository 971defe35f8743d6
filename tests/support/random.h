/* SPDX-License-Identifier: MIT
 *
 * Repeatable random parameters for tests. The seed is printed; SHUF_TEST_SEED sets it.
 */
#ifndef SHUF__TEST_RANDOM_H
#define SHUF__TEST_RANDOM_H

#include <stdint.h>

/* Call once, at the start of each test that draws. */
void random_start(const char *test);

uint64_t random_u64(void);

/* A number of 0 .. limit - 1, limit >= 1. The slight bias does not matter here. */
uint64_t random_below(uint64_t limit);

/* A number of 1 .. limit with an evenly distributed order of magnitude, so small numbers are
 * frequent. */
uint64_t random_size(uint64_t limit);

/* Fills sizes[0 .. world) with random sizes whose sum is n, many of them 0. */
void random_sizes(uint64_t n, uint64_t world, uint64_t *sizes);

#endif
