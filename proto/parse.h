/* SPDX-License-Identifier: MIT
 *
 * Makes requests (core/request.h) from messages. The functions fail like the functions of request.h
 * that they call. Pure and thread-safe.
 */
#ifndef SHUF__PARSE_H
#define SHUF__PARSE_H

#include "message.h"
#include "request.h"

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
