/* SPDX-License-Identifier: MIT
 *
 * Load for a server on a Unix socket, made as redis-benchmark makes it: one thread, epoll,
 * non-blocking connections, each with one request in flight. It speaks the raw protocol, with
 * requests packed once and patched, since on a small machine its own cost counts too. Every reply
 * is checked, and every thousandth result value by value.
 */
#ifndef SHUF__BENCH_LOAD_H
#define SHUF__BENCH_LOAD_H

#include <stdbool.h>
#include <stdint.h>

enum load_kind {
    LOAD_MEMFD,  /* permute by lease; each request gives back the one before */
    LOAD_INLINE, /* permute, the values on the socket */
    LOAD_PING,   /* Redis's PING */
};

struct load {
    enum load_kind kind;
    unsigned connections;
    uint64_t n;
    bool equal; /* everyone asks for one epoch, again and again; else no two are the same */
};

/* Requests a second over `run_ns`, from a process of its own, after a warm-up of `warm_ns` or more:
 * until every connection has every block that comes round mapped. Ends the program where a reply is
 * not as it must be. */
double load_rate(const struct load *load, const char *socket, double warm_ns, double run_ns);

#endif
