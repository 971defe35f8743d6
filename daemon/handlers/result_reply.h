/* SPDX-License-Identifier: MIT
 *
 * The replies to a request for a result. Each one consumes the request's reference to its entry.
 */
#ifndef SHUFD_RESULT_REPLY_H
#define SHUFD_RESULT_REPLY_H

#include "result_request.h"

/* Logs the request. */
void shuf__result_log(const struct shuf__result_request *r);

/* Sends the result: as a lease, as bytes, or only its summary. `event` is the IPC event of a result
 * that is launched but not ready, else NULL. */
void shuf__result_reply(struct shuf__result_request *r, const uint8_t *event);

/* Sends a summary of a result that has no entry. */
void shuf__result_reply_summary(const struct shuf__result_request *r,
                                const struct shuf__summary *summary);

/* Sends a result without values, such as an empty shard. It needs no computation and no lease. */
void shuf__result_reply_empty(struct shuf__result_request *r);

/* Makes the reference to the entry a prefetch of the client. If it fails, the request keeps the
 * reference. */
shuf_status shuf__result_reply_prefetch(struct shuf__result_request *r, struct shuf__error *error);

#endif
