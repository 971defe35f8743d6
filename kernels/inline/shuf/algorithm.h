/* SPDX-License-Identifier: MIT
 *
 * The permutation algorithms, in one table: a new one is one new row and one
 * new file beside this.
 */
#ifndef SHUF_ALGORITHM_H
#define SHUF_ALGORITHM_H

#include <stdint.h>

/* X(NAME, "name", what it is) ; the first row is the default */
#define SHUF_ALGORITHM_MAP(X)                                                \
    X(PRIMEFOLD, "primefold",                                                \
      "multiplications modulo a prime, folds between; any n, random access") \
    X(PHILOX24, "philox24", "VariablePhilox, 24 rounds, with compaction")    \
    X(LCG, "lcg", "linear congruential bijection with compaction")

enum shuf_algorithm {
#define X(name, text, what) SHUF_ALGORITHM_##name,
    SHUF_ALGORITHM_MAP(X)
#undef X
        SHUF_ALGORITHM_COUNT
};

/* Bytes of a record that is shuffled by one, at most. */
#define SHUF_RECORD_MAX UINT64_C(65536)

#endif
