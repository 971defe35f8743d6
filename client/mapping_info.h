/* SPDX-License-Identifier: MIT
 *
 * The part of a reply that locates the values: transport, block, offset and handles. This module
 * checks this part and copies it, because a reply is valid only until the next one.
 */
#ifndef SHUF__MAPPING_INFO_H
#define SHUF__MAPPING_INFO_H

#include "error.h"
#include "shuf.h"
#include "shuf.pb-c.h"

#include <stdbool.h>
#include <stdint.h>

enum { SHUF__IPC_BYTES = 64 }; /* size of a cudaIpcMemHandle_t and of a cudaIpcEventHandle_t */

struct shuf__mapping_info {
    shuf_transport transport;
    bool shared; /* cached, or computed for another request too */
    /* For all transports but INLINE: */
    uint64_t lease, block, block_bytes;
    uint64_t offset; /* of the values in the block; all values are inside the block */
    char device_id[64];
    bool descriptor; /* the reply carried one */
    bool writable;   /* the block is a buffer */
    uint8_t ipc[SHUF__IPC_BYTES];
    bool has_event;
    uint8_t event[SHUF__IPC_BYTES];
};

/* The request accepted the set `transports`; the result has `shape`, or is a buffer. Fails with
 * SHUF_PROTOCOL if the reply does not fit. */
shuf_status shuf__mapping_info_read(const Shuf__ResultReply *reply, unsigned transports,
                                    const shuf_shape *shape, bool buffer,
                                    struct shuf__mapping_info *info, struct shuf__error *error);

#endif
