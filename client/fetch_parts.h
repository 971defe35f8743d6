/* SPDX-License-Identifier: MIT
 *
 * Fetches a result in parts if it is large, or if it does not fit the daemon's memory. The daemon
 * computes the next part while it sends the current one.
 */
#ifndef SHUF__FETCH_PARTS_H
#define SHUF__FETCH_PARTS_H

#include "handle.h"
#include "request_message.h"
#include "round_trip.h"

#include <stdbool.h>

/* True if a request for less may succeed when the whole result does not fit. */
bool shuf__parts_are_possible(const struct shuf__request_message *whole);

/* True if a call for the whole result failed with this status, but may succeed in parts. */
bool shuf__parts_help(const struct shuf__request_message *whole, shuf_status status);

/* Sets *in_parts to whether parts are better for values and summaries: the result is large, and the
 * daemon would not keep the whole for later requests. May ask the daemon, and then fails as other
 * calls do. */
shuf_status shuf__choose_parts(shuf *handle, const struct shuf__request_message *whole,
                               bool *in_parts);

/* `trip` is for the whole result. Delivers the missing bytes of the result to the memory or
 * sink of `trip`. If both are NULL, only makes the summary. `whole` was made from `options`.
 * Fills *result like the reply to the whole request; only the last digits of moments may differ. */
shuf_status shuf__fetch_parts(shuf *handle, const shuf_request *request,
                              const struct shuf__request_message *whole,
                              const struct shuf__round_trip *trip, shuf_result *result);

#endif
