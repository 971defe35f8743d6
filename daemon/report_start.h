/* SPDX-License-Identifier: MIT
 *
 * The messages of a daemon that is ready to serve.
 */
#ifndef SHUFD_REPORT_START_H
#define SHUFD_REPORT_START_H

#include "backend.h"
#include "config/config.h"
#include "net/listener.h"

/* Logs the path of the socket, and the setting that gave it: clients with another environment may
 * look for another path. */
void shuf__report_socket(const struct shuf__listener *listener, const struct shuf__config *config,
                         const struct shuf__log *log);

/* Tells the service manager that the daemon is ready. The faults: of the last reload and of the
 * socket, or "". */
void shuf__report_ready(const struct shuf__listener *listener, const struct shuf__backend *backend,
                        const char *reload_fault, const char *socket_fault);

#endif
