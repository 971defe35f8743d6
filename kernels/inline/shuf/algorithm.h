/* SPDX-License-Identifier: MIT
 *
 * The table of the permutation algorithms. CONTRIBUTING.md, "Adding things", lists the files that a
 * new algorithm changes.
 */
#ifndef SHUF_ALGORITHM_H
#define SHUF_ALGORITHM_H

#include "inline.h"

#include <stdint.h>

/* X(NAME, "name", description, random access). The first row is the default. With random access
 * (1), the value at a position needs no other value. Without (0), the algorithm permutes [0, 2^B),
 * and compaction keeps the values below n in order. */
#define SHUF_ALGORITHM_MAP(X)                                                   \
    X(PRIMEFOLD, "primefold",                                                   \
      "multiplications modulo a prime, folds between; any n, random access", 1) \
    X(PHILOX24, "philox24", "VariablePhilox, 24 rounds, with compaction", 0)    \
    X(LCG, "lcg", "linear congruential bijection with compaction", 0)

enum shuf_algorithm {
#define SHUF__ROW(name, text, description, random_access) SHUF_ALGORITHM_##name,
    SHUF_ALGORITHM_MAP(SHUF__ROW)
#undef SHUF__ROW
        SHUF_ALGORITHM_COUNT
};

/* A mask: bit a is set if algorithm number a has random access. */
enum {
    SHUF_ALGORITHM_RANDOM_ACCESS = 0
#define SHUF__ROW(name, text, description, random_access) | random_access << SHUF_ALGORITHM_##name
    SHUF_ALGORITHM_MAP(SHUF__ROW)
#undef SHUF__ROW
};

SHUF_FUNCTION int shuf_algorithm_has_random_access(enum shuf_algorithm algorithm)
{
    return SHUF_ALGORITHM_RANDOM_ACCESS >> algorithm & 1;
}

#endif
