/* SPDX-License-Identifier: MIT
 *
 * Mean, variance, skewness and kurtosis from the power sums in a reply.
 */
#ifndef SHUF__MOMENTS_FROM_SUMS_H
#define SHUF__MOMENTS_FROM_SUMS_H

#include "shuf.h"
#include "shuf.pb-c.h"

/* count: the number of values, at least 1. */
shuf_moments shuf__moments_from_sums(const Shuf__Sums *sums, uint64_t count);

#endif
