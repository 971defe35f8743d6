/* SPDX-License-Identifier: MIT
 *
 * What the daemon says when it serves.
 */
#ifndef SHUFD_REPORT_START_H
#define SHUFD_REPORT_START_H

#include "backend.h"
#include "config/config.h"
#include "net/listener.h"

/* Logs where the daemon listens, and why there: clients with another environment look elsewhere. */
void shuf__report_socket(const struct shuf__listener *listener, const struct shuf__config *config,
                         const struct shuf__log *log);

/* Tells the service manager. */
void shuf__report_ready(const struct shuf__listener *listener, const struct shuf__backend *backend);

#endif
