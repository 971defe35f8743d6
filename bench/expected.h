/* SPDX-License-Identifier: MIT
 *
 * What a permutation must be, worked out by the plain inline C.
 */
#ifndef SHUF__BENCH_EXPECTED_H
#define SHUF__BENCH_EXPECTED_H

#include <stdbool.h>
#include <stdint.h>

/* `count` values from position `first` on of the default permutation of [0, n). */
void expected_part(uint64_t n, uint64_t seed, uint64_t epoch, uint64_t first, uint64_t count,
                   uint64_t *values);

/* The whole of a small one; `algorithm`: "primefold" or NULL, or "philox24". */
bool is_expected(const char *algorithm, const uint32_t *values, uint64_t n, uint64_t seed,
                 uint64_t epoch);

#endif
