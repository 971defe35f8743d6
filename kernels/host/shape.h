/* SPDX-License-Identifier: MIT
 *
 * What n alone decides of `primefold`, remembered: in a small job the search for the
 * prime is much of the work.
 */
#ifndef SHUF__SHAPE_H
#define SHUF__SHAPE_H

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
