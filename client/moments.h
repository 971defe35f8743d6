/* SPDX-License-Identifier: MIT
 *
 * Mean, variance and so on from the sums that a daemon tells.
 */
#ifndef SHUF__MOMENTS_H
#define SHUF__MOMENTS_H

#include "shuf.h"
#include "shuf.pb-c.h"

/* Of `count` values, at least 1. */
shuf_moments shuf__moments_of(const Shuf__Sums *sums, uint64_t count);

#endif
