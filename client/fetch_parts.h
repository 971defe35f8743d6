/* SPDX-License-Identifier: MIT
 *
 * A large result, or one that does not fit the daemon's memory, fetched in parts: the daemon
 * computes the next part while it sends this one.
 */
#ifndef SHUF__FETCH_PARTS_H
#define SHUF__FETCH_PARTS_H

#include "exchange.h"
#include "handle.h"
#include "request_message.h"

#include <stdbool.h>

/* Whether a call for the whole result, which failed with this status, may succeed in parts. */
bool shuf__parts_help(const struct shuf__request_message *whole, shuf_status status);

/* Whether the values arrive sooner in parts. The daemon computes a part while it sends another one,
 * and it would not keep the whole for later requests. */
bool shuf__parts_are_faster(shuf *handle, const struct shuf__request_message *whole);

/* Delivers what `exchange`, of the whole result, has not delivered yet, to its memory or sink;
 * without both it only makes the summary. `whole` was made from `options`. Fills *result as the
 * reply to the whole request would, except that moments may differ in their last digits. */
shuf_status shuf__fetch_parts(shuf *handle, const struct shuf__request_options *options,
                              const struct shuf__request_message *whole,
                              const struct shuf__exchange *exchange, shuf_result *result);

#endif
