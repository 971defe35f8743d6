/* SPDX-License-Identifier: MIT
 *
 * A request for a permutation, and what its reply says of the result. A request
 * is checked here by the daemon's own rules (plan.h), so a wrong one fails with
 * the same words and no round trip, and a reply can be held to the shape that
 * follows from its request.
 */
#ifndef SHUF__QUESTION_H
#define SHUF__QUESTION_H

#include "error.h"
#include "plan.h"
#include "shuf.h"
#include "transport.h"

/* A request with its parts, which point at each other: not to be copied. */
struct shuf__question {
    Shuf__Request request;
    Shuf__Permute permute;
    Shuf__Slice slice;
    Shuf__Shard shard;
    Shuf__Transport accept[SHUF__TRANSPORTS];
    unsigned transports; /* the same as a set */
    struct shuf__plan plan;
};

/* Without a transport: the values stay where they are. */
shuf_status shuf__question_make(struct shuf__question *q, const shuf_permutation *what,
                                struct shuf__error *error);

/* The set of transports that will do. */
shuf_status shuf__question_accept(struct shuf__question *q, unsigned transports,
                                  struct shuf__error *error);

shuf_shape shuf__question_shape(const struct shuf__question *q);

/* Fills *result, whose shape is set already, from a reply that must have that shape. */
shuf_status shuf__result_read(const Shuf__Reply *reply, shuf_result *result,
                              struct shuf__error *error);

#endif
