/* SPDX-License-Identifier: MIT
 *
 * The whole daemon: its loop, its start and its end.
 */
#ifndef SHUFD_SERVER_H
#define SHUFD_SERVER_H

#include "config/config.h"
#include "config/log.h"

/* Serves until SIGTERM, SIGINT or SIGHUP; the exit code (sysexits.h). */
int shuf__server_run(const struct shuf__config *config, const struct shuf__log *log);

#endif
