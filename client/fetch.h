/* SPDX-License-Identifier: MIT
 *
 * Results by a copy, or only computed: what the public calls for permutations and
 * for numbers have in common.
 */
#ifndef SHUF__FETCH_H
#define SHUF__FETCH_H

#include "question.h"

/* As shuf_permute(), shuf_permute_stream() and shuf_summarize(). */
shuf_status shuf__fetch(shuf *handle, struct shuf__wanted wanted, void *out, size_t bytes,
                        shuf_result *result);
shuf_status shuf__fetch_stream(shuf *handle, struct shuf__wanted wanted, shuf_sink sink,
                               void *context, shuf_result *result);
shuf_status shuf__fetch_summary(shuf *handle, struct shuf__wanted wanted, shuf_result *result);

#endif
