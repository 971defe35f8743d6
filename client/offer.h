/* SPDX-License-Identifier: MIT
 *
 * Where a reply says that the values are: checked, so that what follows can
 * trust it, and copied, since a reply lives only until the next one.
 */
#ifndef SHUF__OFFER_H
#define SHUF__OFFER_H

#include "error.h"
#include "shuf.h"
#include "shuf.pb-c.h"

#include <stdbool.h>
#include <stdint.h>

enum { SHUF__IPC_BYTES = 64 }; /* of a cudaIpcMemHandle_t, and of a cudaIpcEventHandle_t */

struct shuf__offer {
    shuf_transport transport;
    bool shared;
    /* All but INLINE: */
    uint64_t lease, block, block_bytes;
    uint64_t offset; /* of the values in the block, all of which are in it */
    char device_id[64];
    bool descriptor; /* one came with it */
    bool writable;   /* a buffer's */
    uint8_t ipc[SHUF__IPC_BYTES];
    bool has_event;
    uint8_t event[SHUF__IPC_BYTES];
};

/* Of a request that accepted the set `transports`, for values of that shape, or for a buffer.
 * SHUF_PROTOCOL when it is not what was asked for. */
shuf_status shuf__offer_read(const Shuf__ResultReply *reply, unsigned transports,
                             const shuf_shape *shape, bool buffer, struct shuf__offer *offer,
                             struct shuf__error *error);

#endif
