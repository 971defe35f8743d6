/* SPDX-License-Identifier: MIT
 *
 * The message of a request for a result, with all messages that it contains.
 */
#ifndef SHUF__RESULT_MESSAGE_H
#define SHUF__RESULT_MESSAGE_H

#include "request.h"
#include "shuf.pb-c.h"

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

#endif
