/* SPDX-License-Identifier: MIT
 *
 * A request for a result, whatever it is of: what is asked for is looked up or
 * made, and answered with its summary and a lease, its bytes, or neither.
 */
#ifndef SHUFD_ASK_H
#define SHUFD_ASK_H

#include "message.h"
#include "results.h"
#include "transport.h"

#include <stdbool.h>
#include <stdint.h>

struct shuf__session;

/* What a request means. */
struct shuf__asked {
    struct shuf__request request;
    struct shuf__result *input; /* of a shuffle: a reference, which is the ask's to give back */
};

/* How it is to be answered. */
struct shuf__terms {
    struct shuf__accepted accepted;
    bool fingerprint, sums, prefetch, event;
};

/* Answers the session's request: at once, or when its result has come. */
void shuf__ask(struct shuf__session *session, const struct shuf__asked *what,
               const struct shuf__terms *terms);

#endif
