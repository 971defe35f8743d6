/* SPDX-License-Identifier: MIT
 *
 * What a permutation must be, worked out by the plain cipher. A large one's ends are worked out
 * without what lies between.
 */
#ifndef SHUF__BENCH_EXPECTED_H
#define SHUF__BENCH_EXPECTED_H

#include <stdbool.h>
#include <stdint.h>

/* The first, and the last, `count` values of philox24's permutation of [0, n); count <= n. */
void expected_head(uint64_t n, uint64_t seed, uint64_t epoch, uint64_t count, uint64_t *values);
void expected_tail(uint64_t n, uint64_t seed, uint64_t epoch, uint64_t count, uint64_t *values);

/* The whole of a small one. */
bool is_expected(const uint32_t *values, uint64_t n, uint64_t seed, uint64_t epoch);

#endif
