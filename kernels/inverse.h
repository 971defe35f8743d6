/* SPDX-License-Identifier: MIT
 *
 * The inverse of `primefold`: the inverse maps and folds, in reverse order. The inverse of a map is
 * a map too. So one code computes values of positions and, with inverted maps, positions of values.
 */
#ifndef SHUF__INVERSE_H
#define SHUF__INVERSE_H

#include "shuf/primefold.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Replaces the maps of f by their inverses, in reverse order. The `fold` of a map is the key of the
 * inverse fold after it. The inverse adds `addend` after its last map, not after its first. f must
 * have maps: n > SHUF_PRIMEFOLD_EXACT. */
void shuf__invert_maps(shuf_primefold *f);

#ifdef __cplusplus
}
#endif

#endif
