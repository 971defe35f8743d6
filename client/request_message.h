/* SPDX-License-Identifier: MIT
 *
 * The wire message of a request that has a result, and the check of its reply. This module checks
 * the request by the same functions as the daemon (core/request.h). So an invalid request fails
 * here, with the daemon's text, and without a round trip. A reply must have the shape that its
 * request determines.
 */
#ifndef SHUF__REQUEST_MESSAGE_H
#define SHUF__REQUEST_MESSAGE_H

#include "error.h"
#include "mapping.h"
#include "request.h"
#include "result_message.h"
#include "shuf.h"
#include "shuf.pb-c.h"

#include <stdbool.h>

/* The request of a message that a daemon has made. The strings are those of the message. */
shuf_request shuf__request_of_message(const Shuf__Result *from);

/* The message that names a permutation. Its strings are those of the caller. */
Shuf__Permutation shuf__name_permutation(const shuf_permutation *from);

/* Do not copy this struct: the messages point at each other. */
struct shuf__request_message {
    Shuf__Request message;
    struct shuf__request request; /* its meaning */
    shuf_shape shape;             /* of the result */
    unsigned transports;          /* the accepted set */
    uint64_t generation;          /* of the connection that holds the input; 0: no input */
    bool needs_buffer;            /* the input is a buffer */
    struct shuf__result_message result;
    Shuf__Transport accept[SHUF__TRANSPORTS];
};

/* The message accepts no transport: the values stay in the daemon. Without the input of a shuffle,
 * which shuf__set_input() adds. Fails with SHUF_INVALID or SHUF_NO_MEMORY. */
shuf_status shuf__request_message_make(struct shuf__request_message *m, const shuf_request *request,
                                       struct shuf__error *error);

/* Sets the accepted transports. Fails with SHUF_INVALID for an empty or unknown set. */
shuf_status shuf__request_message_accept(struct shuf__request_message *m, unsigned transports,
                                         struct shuf__error *error);

bool shuf__request_message_is_buffer(const struct shuf__request_message *m);

/* These set a field of the delivery, if results of this kind have it. `index`: the index of the
 * first value. */
void shuf__request_message_set_fingerprint(struct shuf__request_message *m, uint64_t index);
bool shuf__request_message_set_prefetch(struct shuf__request_message *m); /* false: none */
void shuf__request_message_set_event(struct shuf__request_message *m);

/* Tells the daemon that the caller requests smaller parts if there is no room for the result. */
void shuf__request_message_set_divisible(struct shuf__request_message *m);

/* Sends `release` inside this message; NULL: nothing. */
void shuf__request_message_give_back(struct shuf__request_message *m, Shuf__Release *release);

/* Fails with SHUF_IO if the call `continues` an earlier reply, and the named key has got other bits
 * since. *seen: the check of the key in the last reply. */
shuf_status shuf__check_key(const Shuf__ResultReply *reply, bool continues, uint64_t *seen,
                            struct shuf__error *error);

/* Fills *result from the reply. Fails with SHUF_PROTOCOL if the reply does not fit the request.
 */
shuf_status shuf__request_message_read_reply(const struct shuf__request_message *m,
                                             const Shuf__Reply *reply, shuf_result *result,
                                             struct shuf__error *error);

/* Mean, variance, skewness and kurtosis from the power sums in a reply of `count` values, at least
 * 1. */
shuf_moments shuf__moments_from_sums(const Shuf__Sums *sums, uint64_t count);

/* In a message, an empty name stands for the default. A caller asks for the default with NULL. An
 * empty name is probably a mistake, such as a variable that is not set. Without this check, a
 * request with an empty key would get public values. Each may be NULL. Fails with SHUF_INVALID if
 * one is empty. */
shuf_status shuf__check_names(const char *algorithm, const char *key, struct shuf__error *error);

/* Fails, because the caller's `bytes` bytes are fewer than those of the result. */
shuf_status shuf__refuse_bytes(const shuf_request *request, const shuf_shape *shape, size_t bytes,
                               struct shuf__error *error);

#endif
