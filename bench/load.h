/* SPDX-License-Identifier: MIT
 *
 * Generates load for a server on a Unix socket, as redis-benchmark does: one thread, epoll, and
 * non-blocking connections with one request in flight each. A request is packed once, and later
 * requests only replace its numbers. This matters on a small machine, where the load generator and
 * the server share the processors. The code checks every reply, and one result of a thousand value
 * by value.
 */
#ifndef SHUF__BENCH_LOAD_H
#define SHUF__BENCH_LOAD_H

#include <stdbool.h>
#include <stdint.h>

enum load_kind {
    LOAD_MEMFD,  /* permute by lease; each request releases the lease before it */
    LOAD_INLINE, /* permute, with values on the socket */
    LOAD_PING,   /* Redis's PING */
};

struct load {
    enum load_kind kind;
    unsigned connections;
    uint64_t n;
    bool equal; /* all requests have the same epoch; if not set, all epochs differ */
};

/* Returns the number of requests a second during `run_ns`. A separate process sends them. First it
 * warms up for at least `warm_ns`, until every connection has mapped all of its blocks. A wrong
 * reply ends the program. */
double load_rate(const struct load *load, const char *socket, double warm_ns, double run_ns);

#endif
