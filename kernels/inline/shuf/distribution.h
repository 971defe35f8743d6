/* SPDX-License-Identifier: MIT
 *
 * The table of the distributions of random streams.
 */
#ifndef SHUF_DISTRIBUTION_H
#define SHUF_DISTRIBUTION_H

#include <stdbool.h>

/* X(NAME, "name", description). The number 0 means no distribution. In a request, BOX_MULLER is the
 * distribution gauss with the method box-muller. */
#define SHUF_DISTRIBUTION_MAP(X)                              \
    X(GAUSS, "gauss", "normal, of a mean and a deviation")    \
    X(UNIFORM, "uniform", "integers, or fractions in [0, 1)") \
    X(BOX_MULLER, "box-muller", "normal as well, by another method")

enum shuf__distribution {
    SHUF_DISTRIBUTION_NONE,
#define SHUF__ROW(name, text, what) SHUF_DISTRIBUTION_##name,
    SHUF_DISTRIBUTION_MAP(SHUF__ROW)
#undef SHUF__ROW
        SHUF_DISTRIBUTION_COUNT
};

/* Whether the distribution has a mean and a deviation. */
static inline bool shuf__distribution_is_normal(unsigned distribution)
{
    return distribution == SHUF_DISTRIBUTION_GAUSS || distribution == SHUF_DISTRIBUTION_BOX_MULLER;
}

#endif
