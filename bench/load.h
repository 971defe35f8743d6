/* SPDX-License-Identifier: MIT
 *
 * Load for a server on a Unix socket, as in redis-benchmark: one thread, epoll, non-blocking
 * connections, each with one request in flight. Requests of the raw protocol are packed once and
 * patched, because on a small machine the load's own cost counts too. Every reply is checked, and
 * every thousandth result value by value.
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
    bool equal; /* all requests have the same epoch; else all differ */
};

/* Requests a second during `run_ns`, from a separate process. A warm-up of at least `warm_ns` comes
 * first, until every connection has mapped all of its blocks. Ends the program on a wrong reply. */
double load_rate(const struct load *load, const char *socket, double warm_ns, double run_ns);

#endif
