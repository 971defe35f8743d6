/* SPDX-License-Identifier: MIT
 *
 * The inverse of `primefold`: the inverse maps and folds, in reverse order. An inverse map is a map
 * too, so the same code computes values of positions and positions of values.
 */
#ifndef SHUF__INVERSE_H
#define SHUF__INVERSE_H

#include "shuf/primefold.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Replaces the maps of f by their inverses, in the order in which the inverse applies them. Each
 * map has the `fold` for the inverse fold that comes after it. The inverse adds `addend` after its
 * last map, not after its first. f must have maps: n > SHUF_PRIMEFOLD_EXACT. */
void shuf__invert_maps(shuf_primefold *f);

#ifdef __cplusplus
}
#endif

#endif
