/* SPDX-License-Identifier: MIT
 *
 * A request for a permutation or for numbers, and what its reply says of the result. A request
 * is checked here by the daemon's own rules (request.h), so a wrong one fails with
 * the same words and no round trip, and a reply can be held to the shape that
 * follows from its request.
 */
#ifndef SHUF__QUESTION_H
#define SHUF__QUESTION_H

#include "request.h"
#include "shuf.h"
#include "shuf.pb-c.h"
#include "transport.h"

#include <stdbool.h>

struct shuf__lease;

/* What a caller asks for: one of them, the others are NULL, or 0. */
struct shuf__wanted {
    const shuf_permutation *permutation;
    const shuf_numbers *numbers;
    const shuf_records *records; /* of: */
    const struct shuf__lease *input;
    uint64_t buffer; /* bytes */
};

/* A request with its parts, which point at each other: not to be copied. */
struct shuf__question {
    Shuf__Request request;
    struct shuf__request what; /* its meaning */
    Shuf__Permute permute;     /* one of these */
    Shuf__Stream stream;
    Shuf__Shuffle shuffle;
    Shuf__Allocate allocate;
    struct { /* the fields of that one which any may have; NULL: it has not */
        Shuf__Transport **accept;
        size_t *n_accept;
        protobuf_c_boolean *fingerprint, *prefetch, *event;
        Shuf__Release **give_back;
    } terms;
    uint64_t connection; /* that its input is of; 0: it has none */
    Shuf__Slice slice;
    Shuf__Shard shard;
    Shuf__Transport accept[SHUF__TRANSPORTS];
    unsigned transports; /* the same as a set */
    shuf_shape shape;
};

/* Without a transport: the values stay where they are. */
shuf_status shuf__question_make(struct shuf__question *q, struct shuf__wanted wanted,
                                struct shuf__error *error);

/* The set of transports that will do. */
shuf_status shuf__question_accept(struct shuf__question *q, unsigned transports,
                                  struct shuf__error *error);

/* Memory to be filled, and no values yet. */
bool shuf__question_is_buffer(const struct shuf__question *q);

/* How it is to be answered, where the request has that. */
void shuf__question_fingerprint(struct shuf__question *q);
void shuf__question_prefetch(struct shuf__question *q);
void shuf__question_event(struct shuf__question *q);
void shuf__question_give_back(struct shuf__question *q, Shuf__Release *release); /* NULL: nothing */

/* Fills *result from a reply, which must be one to this question. */
shuf_status shuf__result_read(const struct shuf__question *q, const Shuf__Reply *reply,
                              shuf_result *result, struct shuf__error *error);

#endif
