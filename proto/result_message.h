/* SPDX-License-Identifier: MIT
 *
 * The message of a request for a result, with all messages that it contains: it is made from a
 * request (core/request.h), and a request is made from it. Also makes the request of an Index.
 */
#ifndef SHUF__RESULT_MESSAGE_H
#define SHUF__RESULT_MESSAGE_H

#include "message.h"
#include "request.h"

/* A copy must be linked again, because the messages point at each other. */
struct shuf__result_message {
    Shuf__Result result;
    Shuf__Delivery delivery;
    Shuf__Permutation permutation; /* of PERMUTE, SHUFFLE and EXCHANGE */
    union {
        Shuf__Permute permute;
        Shuf__Stream stream;
        Shuf__Shuffle shuffle;
        Shuf__Exchange exchange;
        Shuf__Buffer buffer;
    };
    union {
        Shuf__Slice slice;
        Shuf__Shard shard;
    };
};

/* Makes an empty request of this kind, without a view. */
void shuf__result_message_init(struct shuf__result_message *m, Shuf__Result__WhatCase what);

/* Makes its view, which was absent, an empty slice or shard. */
void shuf__result_message_add_view(struct shuf__result_message *m, Shuf__Permute__ViewCase view);

/* Points the messages at each other. Returns &m->result. */
Shuf__Result *shuf__result_message_link(struct shuf__result_message *m);

/* Makes the message of a request that has a result. The strings are those of the request. Leaves
 * out the delivery, the input of a shuffle, and the sizes of an exchange. A shard becomes a slice.
 */
void shuf__result_message_of(const struct shuf__request *request, struct shuf__result_message *m);

/* The distribution and the method for a message. In a message, box-muller is a method of gauss. */
Shuf__Distribution shuf__wire_distribution(enum shuf__distribution distribution);
Shuf__Method shuf__wire_method(enum shuf__distribution distribution);

/* The fields of Delivery that only some kinds have. */
enum {
    SHUF__HAS_PREFETCH = 1,
    SHUF__HAS_EVENT = 2,
    SHUF__HAS_FINGERPRINT = 4, /* and fingerprint_index */
    SHUF__HAS_SUMS = 8,
    SHUF__HAS_DIVISIBLE = 16,
};

/* The set of these fields that the kind has. */
unsigned shuf__delivery_fields(Shuf__Result__WhatCase what);

/* ---- Requests from messages ---- */

/* These functions fail like the functions of request.h that they call. They are pure and
 * thread-safe. */

enum {
    SHUF__LOOK_UPS_MAX = 8000,   /* places of one Index; request and reply then fit a frame */
    SHUF__WRITE_MAX = 60 * 1024, /* bytes of one Write, which then fits a frame */
};

/* Not the delivery. A request for an exchange then points to the lists of sizes in the message. */
shuf_status shuf__parse_result(const Shuf__Result *message, struct shuf__request *request,
                               struct shuf__error *error);

/* The delivery of the message, or an empty one. Returns NULL if it has a field that results of this
 * kind do not have; `error` is then SHUF_INVALID. */
const Shuf__Delivery *shuf__parse_delivery(const Shuf__Result *message, struct shuf__error *error);

shuf_status shuf__parse_index(const Shuf__Index *message, struct shuf__request *request,
                              struct shuf__error *error);

#endif
