/* SPDX-License-Identifier: MIT
 *
 * Makes requests (core/request.h) from messages. Each function fills *request from a message of its
 * kind. It fails like the function of request.h that it calls. Pure and thread-safe.
 */
#ifndef SHUF__PARSE_H
#define SHUF__PARSE_H

#include "message.h"
#include "request.h"

enum {
    SHUF__LOOK_UPS_MAX = 8000,   /* places of one Index; request and reply then fit a frame */
    SHUF__WRITE_MAX = 60 * 1024, /* bytes of one Write, which then fits a frame */
};

shuf_status shuf__parse_permute(const Shuf__Permute *message, struct shuf__request *request,
                                struct shuf__error *error);
shuf_status shuf__parse_stream(const Shuf__Stream *message, struct shuf__request *request,
                               struct shuf__error *error);
shuf_status shuf__parse_shuffle(const Shuf__Shuffle *message, struct shuf__request *request,
                                struct shuf__error *error);
shuf_status shuf__parse_index(const Shuf__Index *message, struct shuf__request *request,
                              struct shuf__error *error);
/* The request then points to the lists of sizes in the message. */
shuf_status shuf__parse_exchange(const Shuf__Exchange *message, struct shuf__request *request,
                                 struct shuf__error *error);
shuf_status shuf__parse_allocate(const Shuf__Allocate *message, struct shuf__request *request,
                                 struct shuf__error *error);

/* The distribution and the method for a message. In a message, box-muller is a method of gauss. */
Shuf__Distribution shuf__wire_distribution(enum shuf__distribution distribution);
Shuf__Method shuf__wire_method(enum shuf__distribution distribution);

#endif
