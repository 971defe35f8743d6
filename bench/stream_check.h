/* SPDX-License-Identifier: MIT
 *
 * Checks a stream before it is measured: compares a block's values with the inline C functions.
 */
#ifndef SHUF__BENCH_STREAM_CHECK_H
#define SHUF__BENCH_STREAM_CHECK_H

#include "backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Compares values all over the block, and the fingerprint of the first ones.
 * Fails with SHUF_INTERNAL where they differ. */
shuf_status stream_check(struct shuf__backend *backend, const struct shuf__block *block,
                         const struct shuf__request *request, struct shuf__error *error);

#ifdef __cplusplus
}
#endif

#endif
