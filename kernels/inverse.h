/* SPDX-License-Identifier: MIT
 *
 * The inverse of `primefold`: its maps in reverse order, each with its multiplier inverted, and
 * between them the inverses of the folds. The same code therefore computes values and positions.
 */
#ifndef SHUF__INVERSE_H
#define SHUF__INVERSE_H

#include "shuf/primefold.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Replaces the maps of f by their inverses, in the order of their application. Each map has the
 * `fold` of the inverse fold that follows it. `addend` is added after the last map instead of the
 * first. f must have maps: n > SHUF_PRIMEFOLD_EXACT. */
void shuf__invert_maps(shuf_primefold *f);

#ifdef __cplusplus
}
#endif

#endif
