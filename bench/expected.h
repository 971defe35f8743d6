/* SPDX-License-Identifier: MIT
 *
 * The expected values of permutations, by the plain inline C.
 */
#ifndef SHUF__BENCH_EXPECTED_H
#define SHUF__BENCH_EXPECTED_H

#include "shuf/philox24.h"
#include "shuf/primefold.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* `count` values, from position `first`, of the default permutation of [0, n). */
static inline void expected_part(uint64_t n, uint64_t seed, uint64_t epoch, uint64_t first,
                                 uint64_t count, uint64_t *values)
{
    const shuf_primefold f = shuf_primefold_make(n, seed, epoch);
    for (uint64_t i = 0; i < count; i++)
        values[i] = shuf_primefold_forward(&f, first + i);
}

static inline bool is_primefold(const uint32_t *values, uint64_t n, uint64_t seed, uint64_t epoch)
{
    const shuf_primefold f = shuf_primefold_make(n, seed, epoch);
    for (uint64_t i = 0; i < n; i++)
        if (values[i] != shuf_primefold_forward(&f, i))
            return false;
    return true;
}

static inline bool is_philox24(const uint32_t *values, uint64_t n, uint64_t seed, uint64_t epoch)
{
    shuf_philox24 f = shuf_philox24_make(n, seed, epoch);
    for (uint64_t x = 0, place = 0; place < n; x++) {
        uint64_t value = shuf_philox24_forward(&f, x);
        if (value < n && value != values[place++])
            return false;
    }
    return true;
}

/* Whether `values` is a whole small permutation. `algorithm`: "primefold" or NULL, or
 * "philox24". */
static inline bool is_expected(const char *algorithm, const uint32_t *values, uint64_t n,
                               uint64_t seed, uint64_t epoch)
{
    return algorithm && strcmp(algorithm, "philox24") == 0 ? is_philox24(values, n, seed, epoch)
                                                           : is_primefold(values, n, seed, epoch);
}

#endif
