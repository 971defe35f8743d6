/* SPDX-License-Identifier: MIT
 *
 * Whether a stream that is about to be measured is the stream: a block's values
 * against the plain inline C.
 */
#ifndef SHUF__BENCH_DRAWN_H
#define SHUF__BENCH_DRAWN_H

#include "backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Compares values all over the block, and the fingerprint of its first
 * ones; fails where they are not the inline C's. */
shuf_status drawn_check(struct shuf__backend *backend, const struct shuf__block *block,
                        const struct shuf__request *request, struct shuf__error *error);

#ifdef __cplusplus
}
#endif

#endif
