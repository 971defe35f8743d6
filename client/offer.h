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
    uint8_t ipc[SHUF__IPC_BYTES];
    bool has_event;
    uint8_t event[SHUF__IPC_BYTES];
};

/* Of a request that accepted the set `transports`, for `bytes` bytes of values whose width is
 * `width`. SHUF_PROTOCOL when it is not what was asked for. */
shuf_status shuf__offer_read(const Shuf__ResultReply *reply, unsigned transports, uint64_t bytes,
                             unsigned width, struct shuf__offer *offer, struct shuf__error *error);

#endif
