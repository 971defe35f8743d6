/* SPDX-License-Identifier: MIT
 *
 * The steps of the script that send a request. Each takes the client and the fields of the request
 * from the script.
 */
#ifndef SHUF__FUZZ_REQUESTS_H
#define SHUF__FUZZ_REQUESTS_H

#include "client.h"
#include "fuzz.h"

/* X(name): every kind of request except Hello, which connects. */
#define REQUESTS(X) \
    X(permute)      \
    X(stream)       \
    X(exchange)     \
    X(shuffle)      \
    X(buffer)       \
    X(write)        \
    X(release)      \
    X(index)        \
    X(drop)         \
    X(status)       \
    X(leases)       \
    X(metrics)      \
    X(large_summary)

#define X(name) void request_##name(struct fuzz_bytes *bytes);
REQUESTS(X)
#undef X

/* Connects a client that is closed, and greets the daemon. */
void request_hello(struct fuzz_bytes *bytes);

/* Call at the beginning of each input. */
void requests_reset(void);

struct client *draw_client(struct fuzz_bytes *bytes);

#endif
