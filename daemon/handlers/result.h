/* SPDX-License-Identifier: MIT
 *
 * A request for a result, whatever it is of: what is asked for is looked up or
 * made, and answered with its summary and a lease, its bytes, or neither.
 */
#ifndef SHUFD_RESULT_H
#define SHUFD_RESULT_H

#include "cache/cache.h"
#include "memory/transport.h"
#include "message.h"

#include <stdbool.h>
#include <stdint.h>

struct shuf__session;

/* What a request means. */
struct shuf__parsed_request {
    struct shuf__request request;
    struct shuf__cache_entry
        *input; /* of a shuffle: a reference, which is the ask's to give back */
};

/* How it is to be answered. */
struct shuf__reply_options {
    struct shuf__accepted accepted;
    bool fingerprint, sums, prefetch, event;
};

/* Answers the session's request: at once, or when its result has come. */
void shuf__ask(struct shuf__session *session, const struct shuf__parsed_request *what,
               const struct shuf__reply_options *terms);

#endif
