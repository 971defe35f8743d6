/* SPDX-License-Identifier: MIT
 *
 * The expected values of permutations, by the plain inline C.
 */
#ifndef SHUF__BENCH_EXPECTED_H
#define SHUF__BENCH_EXPECTED_H

#include <stdbool.h>
#include <stdint.h>

/* `count` values, from position `first`, of the default permutation of [0, n). */
void expected_part(uint64_t n, uint64_t seed, uint64_t epoch, uint64_t first, uint64_t count,
                   uint64_t *values);

/* Whether `values` is a whole small permutation. `algorithm`: "primefold" or NULL, or
 * "philox24". */
bool is_expected(const char *algorithm, const uint32_t *values, uint64_t n, uint64_t seed,
                 uint64_t epoch);

#endif
