/* SPDX-License-Identifier: MIT
 *
 * The parameters of `primefold` that n alone decides, cached: in a small computation the search for
 * the prime is much of the work.
 */
#ifndef SHUF__HOST_SHAPE_H
#define SHUF__HOST_SHAPE_H

#include "shuf/primefold.h"

#ifdef __cplusplus
extern "C" {
#endif

/* shuf_primefold_shape_of(); each thread remembers its last n. */
shuf_primefold_shape shuf__primefold_shape(uint64_t n);

#ifdef __cplusplus
}
#endif

#endif
