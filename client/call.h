/* SPDX-License-Identifier: MIT
 *
 * A round trip that survives the loss of its daemon. A result is a pure function of its request,
 * so the call sends the same request to the next daemon and continues at the first byte that is
 * still missing.
 */
#ifndef SHUF__CALL_H
#define SHUF__CALL_H

#include "handle.h"
#include "shuf.h"
#include "shuf.pb-c.h"

#include <stdbool.h>
#include <stdint.h>

/* ---- Calls ---- */

/* One request, its reply and the payload after the reply. A round trip that lost its daemon runs
 * again on the next connection: it skips the payload bytes that it has delivered. */
struct shuf__round_trip {
    Shuf__Request *request;
    /* Called before the request is sent again. Removes the fields that only the last connection can
     * serve. Also removes those that a daemon performs even if it refuses the request, such as
     * releases. May be NULL. */
    void (*prepare_retry)(struct shuf__round_trip *trip);
    /* Called once for each reply with status SHUF_OK. May set the payload fields below. */
    shuf_status (*read_reply)(struct shuf__round_trip *trip, const Shuf__Reply *reply,
                              struct shuf__error *error);
    void *context; /* for these two functions */
    /* The generation of the connection that can serve the request. A request that names a lease
     * needs the connection of this lease. 0: any connection can serve the request. */
    uint64_t generation;
    bool needs_buffer; /* this lease is a buffer */
    /* The payload goes to `memory` or, if this is NULL, to `sink`. */
    uint64_t payload_bytes;
    uint8_t *memory;
    shuf_sink sink;
    uint64_t
        width; /* bytes of a value: the sink gets only whole values. Divides the buffer's size. */
    void *sink_context;
    uint64_t key_check; /* of the reply whose values are delivered */
    uint64_t delivered; /* bytes of the payload so far; a sink gets only whole values */
    bool is_stopped;    /* by its sink */
};

/* Leaves the message of a failure in the handle. One public call may run several round trips. The
 * reconnect time limits the sum of their waits for a daemon. */
shuf_status shuf__call_run(shuf *handle, struct shuf__round_trip *trip);

/* Opens the connection. Tries at least once, and until a daemon answers or the reconnect time is
 * over. After a wait in vain it tries only once, until a daemon answers. */
shuf_status shuf__call_await_daemon(shuf *handle);

/* Fails with SHUF_NO_DAEMON: the message says that a daemon was lost. */
shuf_status shuf__call_fail_lost(shuf *handle);

/* The most daemons that a call may lose one after another without receiving a new byte. The limit
 * stops a request that crashes every daemon. */
enum { SHUF__LOSSES_MAX = 16 };

/* Fails with SHUF_NO_DAEMON after so many losses. */
shuf_status shuf__call_fail_losses(shuf *handle);

/* Pauses before another attempt, each time longer. The limit is the reconnect time of the handle,
 * or its timeout if that is less. False if this time has passed since the first call, or
 * if a signal has ended the wait: then the handle has this error. */
bool shuf__wait_again(shuf *handle, struct shuf__wait *wait);

/* ---- Releases ---- */

/* The Release message names the leases that this process gives back, and the blocks that it has
 * unmapped. It is sent inside the next request, or alone. */

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
