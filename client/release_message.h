/* SPDX-License-Identifier: MIT
 *
 * The Release message. It names the leases that this process gives back, and the blocks that it has
 * unmapped. It is sent inside the next request, or alone.
 */
#ifndef SHUF__RELEASE_MESSAGE_H
#define SHUF__RELEASE_MESSAGE_H

#include "handle.h"
#include "shuf.pb-c.h"

#include <stdbool.h>
#include <stdint.h>

/* At most one lease, and the blocks that were unmapped when it ended. Do not copy this struct:
 * `message` points at its ids. */
struct shuf__release_message {
    Shuf__Release message;
    uint64_t lease, blocks[SHUF__UNMAPPED_MAX];
};

/* Names the lease, and no block as long as message.n_unmapped is 0. */
void shuf__release_message_init(struct shuf__release_message *release, uint64_t lease);

/* Requires an open connection. Sends `message` alone. Succeeds if the daemon is lost, because its
 * leases have ended too. */
shuf_status shuf__release_send(shuf *handle, Shuf__Release *message, struct shuf__error *error);

/* Unmaps all mappings without a lease and reports their blocks to the daemon, which may need the
 * memory. False if there is no such mapping. The message of a failure is in the handle. */
bool shuf__release_idle_mappings(shuf *handle);

/* Sets the limit of idle mappings of device memory (mapping.h), and reports the blocks that this
 * unmaps. */
shuf_status shuf__release_above_limit(shuf *handle, uint64_t bytes);

/* Reports that this process has given back all leases and unmapped all blocks. Without this report
 * the daemon keeps its device memory allocated until this process ends. */
void shuf__release_everything(shuf *handle);

#endif
