/* SPDX-License-Identifier: MIT
 *
 * Checks a stream before its measurement: compares values of the block with the inline C.
 */
#ifndef SHUF__BENCH_STREAM_CHECK_H
#define SHUF__BENCH_STREAM_CHECK_H

#include "backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Compares values from the whole block, and the fingerprint of the first values. Fails with
 * SHUF_INTERNAL if they differ. */
shuf_status stream_check(struct shuf__backend *backend, const struct shuf__block *block,
                         const struct shuf__request *request, struct shuf__error *error);

#ifdef __cplusplus
}
#endif

#endif
