/* SPDX-License-Identifier: MIT
 *
 * Serves the metrics by HTTP on a port of this machine. libmicrohttpd has a thread of its own,
 * which parses requests and sends replies. The loop's thread only makes the text, at most every 50
 * ms, so HTTP clients cannot slow the daemon down.
 */
#ifndef SHUFD_HTTP_H
#define SHUFD_HTTP_H

#include "handlers/service.h"

struct shuf__http;

/* Starts the server. If the configuration has no server, sets *http to NULL. Fails with SHUF_IO if
 * the address is not free, and with SHUF_INVALID in a build without libmicrohttpd. */
shuf_status shuf__http_start(struct shuf__http **http, struct shuf__service *service,
                             struct shuf__error *error);

/* Ends the server and closes its handles. Run the loop once more: it frees the server. `http` may
 * be NULL. */
void shuf__http_stop(struct shuf__http *http);

/* The end of a message about a port that failed with this errno: "; ...", or "". If a service
 * manager runs the daemon, the reason is often the sandbox of its unit, which the text of errno
 * does not mention. */
const char *shuf__remedy_of_port(int cause);

#endif
