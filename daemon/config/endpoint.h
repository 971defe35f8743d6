/* SPDX-License-Identifier: MIT
 *
 * Where a server listens: "off", "127.0.0.1:PORT" or "[::1]:PORT". Other addresses are refused,
 * because they would be open to other machines.
 */
#ifndef SHUFD_ENDPOINT_H
#define SHUFD_ENDPOINT_H

#include "error.h"

#include <netinet/in.h>

struct shuf__endpoint {
    int family; /* AF_UNSPEC: off */
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } address;
    socklen_t length;
};

/* Reads an endpoint. Fails with SHUF_INVALID; the error begins with `field`. */
shuf_status shuf__endpoint_parse(const char *field, const char *text,
                                 struct shuf__endpoint *endpoint, struct shuf__error *error);

#endif
