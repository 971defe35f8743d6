/* SPDX-License-Identifier: MIT
 *
 * The kinds of requests by name. The number of a kind is the enumerator SHUF__REQUEST__BODY_NAME
 * or, for a request for a result, SHUF__RESULT__WHAT_NAME.
 */
#ifndef SHUF__REQUEST_KINDS_H
#define SHUF__REQUEST_KINDS_H

#include "shuf.pb-c.h"

/* X(NAME, name) */
#define SHUF__OTHER_KINDS(X) \
    X(HELLO, hello)          \
    X(STATUS, status)        \
    X(RELEASE, release)      \
    X(LEASES, leases)        \
    X(INDEX, index)          \
    X(WRITE, write)          \
    X(DROP, drop)            \
    X(METRICS, metrics)

#define SHUF__RESULT_KINDS(X) \
    X(PERMUTE, permute)       \
    X(STREAM, stream)         \
    X(SHUFFLE, shuffle)       \
    X(EXCHANGE, exchange)     \
    X(BUFFER, buffer)

/* All kinds have smaller numbers. 0 stands for a frame without a known kind. */
enum { SHUF__REQUEST_KIND_MAX = 24 };

/* The number of the kind; 0: a result of an unknown kind. */
static inline unsigned shuf__request_kind(const Shuf__Request *request)
{
    return request->body_case == SHUF__REQUEST__BODY_RESULT ? (unsigned)request->result->what_case
                                                            : (unsigned)request->body_case;
}

#endif
