/* SPDX-License-Identifier: MIT
 *
 * A result by way of a lease, for --transport.
 */
#ifndef SHUF__VIEW_H
#define SHUF__VIEW_H

#include "order.h"

struct shuf__view {
    shuf_lease lease; /* as it was: its data is no longer there. transport 0: none was taken */
    bool right;       /* its first and last values are those that the daemon told */
};

/* Leases the result, hands its values to `sink` (may be NULL), and gives it back. As
 * shuf_permute_stream(): SHUF_CANCELLED is the sink's doing. */
shuf_status shuf__view_read(shuf *daemon, const struct shuf__order *order, shuf_sink sink,
                            void *context, struct shuf__view *view);

#endif
