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

enum { SHUF__ASKED_TEXT = 320 };

/* What a request means. */
struct shuf__asked {
    struct shuf__key key; /* but for uid and kind */
    Shuf__Dtype dtype;
    uint64_t bytes;
    struct shuf__result *input; /* of a shuffle: a reference, which is the ask's to give back */
    /* Names it, for the log: briefly, or as a whole. */
    void (*tell)(const struct shuf__key *key, bool whole, char text[SHUF__ASKED_TEXT]);
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
