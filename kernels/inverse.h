/* SPDX-License-Identifier: MIT
 *
 * `primefold` backwards: what undoes maps and folds is as many maps and what undoes the
 * folds, so all that computes values computes positions as well.
 */
#ifndef SHUF__TURN_H
#define SHUF__TURN_H

#include "shuf/primefold.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The maps that undo those of f, in the order in which they do; after each comes, instead of a
 * fold, the undoing of the fold with its `fold`. `addend` is added after the last map instead of
 * the first. f has maps: n > SHUF_PRIMEFOLD_EXACT. */
void shuf__turn(shuf_primefold *f);

#ifdef __cplusplus
}
#endif

#endif
