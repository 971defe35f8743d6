/* SPDX-License-Identifier: MIT
 *
 * The kinds of requests by name. The number of a kind is the enumerator SHUF__REQUEST__BODY_NAME.
 */
#ifndef SHUF__REQUEST_KINDS_H
#define SHUF__REQUEST_KINDS_H

#include "shuf.pb-c.h"

/* X(NAME, name) */
#define SHUF__REQUEST_KINDS(X) \
    X(HELLO, hello)            \
    X(PERMUTE, permute)        \
    X(STATUS, status)          \
    X(RELEASE, release)        \
    X(LEASES, leases)          \
    X(INDEX, index)            \
    X(STREAM, stream)          \
    X(ALLOCATE, allocate)      \
    X(WRITE, write)            \
    X(SHUFFLE, shuffle)        \
    X(DROP, drop)              \
    X(METRICS, metrics)        \
    X(EXCHANGE, exchange)

/* All kinds have smaller numbers. 0 stands for a frame without a known body. */
enum { SHUF__REQUEST_KIND_MAX = 16 };

#endif
