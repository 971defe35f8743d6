/* SPDX-License-Identifier: MIT
 *
 * Runs the daemon: its start, its loop and its end.
 */
#ifndef SHUFD_SERVER_H
#define SHUFD_SERVER_H

#include "config/config.h"
#include "config/log.h"

/* Serves until SIGTERM or SIGINT. Reads the configuration again on SIGHUP. Returns the exit code
 * (sysexits.h). */
int shuf__server_run(struct shuf__config *config, struct shuf__log *log);

#endif
