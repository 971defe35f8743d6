/* SPDX-License-Identifier: MIT
 *
 * Copies a result to this process, or only lets the daemon compute it.
 */
#ifndef SHUF__FETCH_H
#define SHUF__FETCH_H

#include "handle.h"
#include "request_message.h"

/* As shuf_copy(), shuf_each() and shuf_summarize(). */
shuf_status shuf__fetch(shuf *handle, const shuf_request *request, void *out, size_t bytes,
                        shuf_result *result);
shuf_status shuf__fetch_each(shuf *handle, const shuf_request *request, shuf_sink sink,
                             void *context, shuf_result *result);
shuf_status shuf__fetch_summary(shuf *handle, const shuf_request *request, shuf_result *result);

#endif
