/* SPDX-License-Identifier: MIT
 *
 * What streams give: the distributions and the types of a value, in one table each.
 */
#ifndef SHUF_DISTRIBUTION_H
#define SHUF_DISTRIBUTION_H

#include <stdbool.h>

/* X(NAME, "name", what it is). A value of 0 is none of them. On the wire box-muller is a method of
 * gauss. */
#define SHUF_DISTRIBUTION_MAP(X)                               \
    X(GAUSS, "gauss", "normal, of a mean and a deviation")     \
    X(UNIFORM, "uniform", "whole numbers, or those in [0, 1)") \
    X(BOX_MULLER, "box-muller", "normal as well, by another method")

enum shuf__distribution {
    SHUF_DISTRIBUTION_NONE,
#define X(name, text, what) SHUF_DISTRIBUTION_##name,
    SHUF_DISTRIBUTION_MAP(X)
#undef X
        SHUF_DISTRIBUTION_COUNT
};

/* Whether it has a mean and a deviation. */
static inline bool shuf__distribution_is_normal(unsigned distribution)
{
    return distribution == SHUF_DISTRIBUTION_GAUSS || distribution == SHUF_DISTRIBUTION_BOX_MULLER;
}

/* X(NAME, "name", bytes, gauss, uniform): the last two tell which distributions have it; box-muller
 * has those of gauss. */
#define SHUF_NUMBER_MAP(X) \
    X(U32, "u32", 4, 0, 1) \
    X(U64, "u64", 8, 0, 1) \
    X(F64, "f64", 8, 1, 1) \
    X(F32, "f32", 4, 1, 1) \
    X(F16, "f16", 2, 1, 0) \
    X(BF16, "bf16", 2, 1, 0)

enum shuf_number {
#define X(name, text, bytes, gauss, uniform) SHUF_NUMBER_##name,
    SHUF_NUMBER_MAP(X)
#undef X
        SHUF_NUMBER_COUNT
};

#endif
