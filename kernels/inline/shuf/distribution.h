/* SPDX-License-Identifier: MIT
 *
 * The table of the distributions of random streams.
 */
#ifndef SHUF_DISTRIBUTION_H
#define SHUF_DISTRIBUTION_H

#include <stdbool.h>

/* The parameters of a distribution: the fields `mean` and `std` of a request. A field that it does
 * not have is 0. */
enum shuf__parameters {
    SHUF__NO_PARAMETERS,
    SHUF__MEAN_AND_STD, /* any mean, and a standard deviation above 0 */
    SHUF__MEAN,         /* a mean above 0 */
    SHUF__PROBABILITY,  /* a mean from 0 to 1 */
};

/* X(NAME, "name", parameters, types, description). The number 0 means no distribution. In a
 * request, BOX_MULLER is the distribution gauss with the method box-muller. The types are a set of
 * those in shuf_dtype.h, one bit for each. */
#define SHUF_DISTRIBUTION_MAP(X)                                                  \
    X(GAUSS, "gauss", SHUF__MEAN_AND_STD,                                         \
      1U << SHUF_F64 | 1U << SHUF_F32 | 1U << SHUF_F16 | 1U << SHUF_BF16,         \
      "normal, of a mean and a deviation")                                        \
    X(UNIFORM, "uniform", SHUF__NO_PARAMETERS,                                    \
      1U << SHUF_U32 | 1U << SHUF_U64 | 1U << SHUF_F64 | 1U << SHUF_F32,          \
      "integers, or fractions in [0, 1)")                                         \
    X(BOX_MULLER, "box-muller", SHUF__MEAN_AND_STD,                               \
      1U << SHUF_F64 | 1U << SHUF_F32 | 1U << SHUF_F16 | 1U << SHUF_BF16,         \
      "normal as well, by another method")                                        \
    X(EXPONENTIAL, "exponential", SHUF__MEAN, 1U << SHUF_F64 | 1U << SHUF_F32,    \
      "positive, of a mean")                                                      \
    X(BERNOULLI, "bernoulli", SHUF__PROBABILITY, 1U << SHUF_U32 | 1U << SHUF_U64, \
      "words of independent bits, each 1 with a probability")

enum shuf__distribution {
    SHUF_DISTRIBUTION_NONE,
#define SHUF__ROW(name, text, parameters, types, what) SHUF_DISTRIBUTION_##name,
    SHUF_DISTRIBUTION_MAP(SHUF__ROW)
#undef SHUF__ROW
        SHUF_DISTRIBUTION_COUNT
};

static inline enum shuf__parameters shuf__distribution_parameters(unsigned distribution)
{
    static const enum shuf__parameters table[] = {SHUF__NO_PARAMETERS,
#define SHUF__ROW(name, text, parameters, types, what) parameters,
                                                  SHUF_DISTRIBUTION_MAP(SHUF__ROW)
#undef SHUF__ROW
    };
    return distribution < SHUF_DISTRIBUTION_COUNT ? table[distribution] : SHUF__NO_PARAMETERS;
}

/* Whether a request can name the distribution by this number. */
static inline bool shuf__distribution_is_named(int distribution)
{
    return distribution > SHUF_DISTRIBUTION_NONE && distribution < SHUF_DISTRIBUTION_COUNT &&
           distribution != SHUF_DISTRIBUTION_BOX_MULLER;
}

/* Whether the distribution has a mean and a deviation. */
static inline bool shuf__distribution_is_normal(unsigned distribution)
{
    return shuf__distribution_parameters(distribution) == SHUF__MEAN_AND_STD;
}

#endif
