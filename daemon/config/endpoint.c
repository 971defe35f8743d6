/* SPDX-License-Identifier: MIT
 *
 * See endpoint.h.
 */
#include "endpoint.h"

#include "number.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static bool parse_port(const char *text, in_port_t *port)
{
    uint64_t number;
    struct shuf__error ignored;
    if (shuf__number_parse_in("port", text, 1, 65535, &number, &ignored))
        return false;
    *port = htons((uint16_t)number);
    return true;
}

static bool parse_v4(const char *host, const char *port, struct shuf__endpoint *endpoint)
{
    struct sockaddr_in *address = &endpoint->address.v4;
    address->sin_family = AF_INET;
    endpoint->length = sizeof *address;
    return inet_pton(AF_INET, host, &address->sin_addr) == 1 &&
           ntohl(address->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET &&
           parse_port(port, &address->sin_port);
}

static bool parse_v6(const char *host, const char *port, struct shuf__endpoint *endpoint)
{
    struct sockaddr_in6 *address = &endpoint->address.v6;
    address->sin6_family = AF_INET6;
    address->sin6_addr = in6addr_loopback;
    endpoint->length = sizeof *address;
    return strcmp(host, "[::1]") == 0 && parse_port(port, &address->sin6_port);
}

static bool parse_port_of_host(const char *text, struct shuf__endpoint *endpoint)
{
    char host[64];
    const char *colon = strrchr(text, ':');
    if (!colon || (size_t)(colon - text) >= sizeof host)
        return false;
    snprintf(host, sizeof host, "%.*s", (int)(colon - text), text);
    return (host[0] == '[' ? parse_v6 : parse_v4)(host, colon + 1, endpoint);
}

shuf_status shuf__endpoint_parse(const char *field, const char *text,
                                 struct shuf__endpoint *endpoint, struct shuf__error *error)
{
    memset(endpoint, 0, sizeof *endpoint);
    if (strcmp(text, "off") == 0)
        return SHUF_OK;
    const bool ok = parse_port_of_host(text, endpoint);
    endpoint->family = endpoint->address.any.sa_family;
    if (ok)
        return SHUF_OK;
    return shuf__fail(error, SHUF_INVALID, "%s %.80s: expected off, 127.0.0.1:PORT or [::1]:PORT",
                      field, *text ? text : "''");
}
