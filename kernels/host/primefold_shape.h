/* SPDX-License-Identifier: MIT
 *
 * A cache of the parameters of `primefold` that depend on n alone. Without it, the search for the
 * prime would take much of the time of a small computation.
 */
#ifndef SHUF__HOST_PRIMEFOLD_SHAPE_H
#define SHUF__HOST_PRIMEFOLD_SHAPE_H

#include "shuf/primefold.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns shuf_primefold_shape_of(n). Each thread caches the shape of its last n. */
shuf_primefold_shape shuf__primefold_shape(uint64_t n);

#ifdef __cplusplus
}
#endif

#endif
