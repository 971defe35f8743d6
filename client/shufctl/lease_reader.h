/* SPDX-License-Identifier: MIT
 *
 * Reads a result through a lease, for --transport.
 */
#ifndef SHUF__LEASE_READER_H
#define SHUF__LEASE_READER_H

#include "output_options.h"

struct shuf__lease_reading {
    shuf_lease lease; /* a copy; its data is no longer mapped. transport 0: no lease was taken */
    bool ends_match;  /* the first and last values equal those of the reply */
};

/* Leases the result, passes its values to `sink` (may be NULL) and gives the lease back. Fails as
 * shuf_permute_each(): SHUF_CANCELLED when the sink stopped it. */
shuf_status shuf__read_by_lease(shuf *daemon, const struct shuf__output_options *options,
                                shuf_sink sink, void *context, struct shuf__lease_reading *reading);

#endif
