/* SPDX-License-Identifier: MIT
 *
 * The common part of the public calls for permutations and numbers. They copy a result to this
 * process, or only let the daemon compute it.
 */
#ifndef SHUF__FETCH_H
#define SHUF__FETCH_H

#include "handle.h"
#include "request_message.h"

/* As shuf_permute(), shuf_permute_each() and shuf_summarize(). */
shuf_status shuf__fetch(shuf *handle, const struct shuf__request_options *options, void *out,
                        size_t bytes, shuf_result *result);
shuf_status shuf__fetch_each(shuf *handle, const struct shuf__request_options *options,
                             shuf_sink sink, void *context, shuf_result *result);
shuf_status shuf__fetch_summary(shuf *handle, const struct shuf__request_options *options,
                                shuf_result *result);

#endif
