/* SPDX-License-Identifier: MIT
 *
 * The table of the distributions of random streams.
 */
#ifndef SHUF_DISTRIBUTION_H
#define SHUF_DISTRIBUTION_H

#include <stdbool.h>

/* The parameters of a distribution: the fields `mean`, `std` and `bound` of a request. A field that
 * it does not have is 0. */
enum shuf__parameters {
    SHUF__NO_PARAMETERS,
    SHUF__MEAN_AND_STD, /* any mean, and a standard deviation above 0 */
    SHUF__MEAN,         /* a mean above 0 */
    SHUF__PROBABILITY,  /* a mean from 0 to 1 */
    SHUF__BOUND,        /* a bound above 0 */
};

/* X(NAME, number, "name", parameters, types). The numbers are those of the wire and of the public
 * header, 0 means no distribution, and the last row has the largest one. The types are a set of
 * those in shuf_dtype.h, one bit for each. */
#define SHUF_NAMED_DISTRIBUTION_MAP(X)                                               \
    X(GAUSS, 1, "gauss", SHUF__MEAN_AND_STD,                                         \
      1U << SHUF_F64 | 1U << SHUF_F32 | 1U << SHUF_F16 | 1U << SHUF_BF16)            \
    X(UNIFORM, 2, "uniform", SHUF__NO_PARAMETERS,                                    \
      1U << SHUF_U32 | 1U << SHUF_U64 | 1U << SHUF_F64 | 1U << SHUF_F32)             \
    X(EXPONENTIAL, 4, "exponential", SHUF__MEAN, 1U << SHUF_F64 | 1U << SHUF_F32)    \
    X(BERNOULLI, 5, "bernoulli", SHUF__PROBABILITY, 1U << SHUF_U32 | 1U << SHUF_U64) \
    X(INTEGERS, 6, "integers", SHUF__BOUND, 1U << SHUF_U32 | 1U << SHUF_U64)

/* In a request, BOX_MULLER is the distribution gauss with the method box-muller. */
#define SHUF_DISTRIBUTION_MAP(X)                                          \
    X(BOX_MULLER, 3, "box-muller", SHUF__MEAN_AND_STD,                    \
      1U << SHUF_F64 | 1U << SHUF_F32 | 1U << SHUF_F16 | 1U << SHUF_BF16) \
    SHUF_NAMED_DISTRIBUTION_MAP(X)

enum shuf__distribution {
    SHUF_DISTRIBUTION_NONE,
#define SHUF__ROW(name, number, text, parameters, types) SHUF_DISTRIBUTION_##name = number,
    SHUF_DISTRIBUTION_MAP(SHUF__ROW)
#undef SHUF__ROW
        SHUF_DISTRIBUTION_COUNT
};

static inline enum shuf__parameters shuf__distribution_parameters(unsigned distribution)
{
    switch (distribution) {
#define SHUF__ROW(name, number, text, parameters, types) \
    case number:                                         \
        return parameters;
        SHUF_DISTRIBUTION_MAP(SHUF__ROW)
#undef SHUF__ROW
    default:
        return SHUF__NO_PARAMETERS;
    }
}

/* Whether a request can name the distribution by this number. */
static inline bool shuf__distribution_is_named(int distribution)
{
    return distribution > SHUF_DISTRIBUTION_NONE && distribution < SHUF_DISTRIBUTION_COUNT &&
           distribution != SHUF_DISTRIBUTION_BOX_MULLER;
}

static inline bool shuf__distribution_has_mean(unsigned distribution)
{
    const enum shuf__parameters parameters = shuf__distribution_parameters(distribution);
    return parameters != SHUF__NO_PARAMETERS && parameters != SHUF__BOUND;
}

/* Whether the distribution has a mean and a deviation. */
static inline bool shuf__distribution_is_normal(unsigned distribution)
{
    return shuf__distribution_parameters(distribution) == SHUF__MEAN_AND_STD;
}

#endif
