/* SPDX-License-Identifier: MIT
 *
 * The checks of the option --check, which does not start the daemon. A start uses the same exit
 * codes.
 */
#ifndef SHUFD_CHECK_H
#define SHUFD_CHECK_H

#include "backend.h"
#include "config/config.h"

/* Checks the socket's path and group, except for a service, opens the backend and prints its device
 * on stdout. Returns the exit code, which is EX_OK if the daemon could start. Else it logs the
 * reason. */
int shuf__check(const struct shuf__config *config, bool service, const struct shuf__log *log);

/* Logs a warning for each budget that is below 2 MiB, or above the memory of the machine or the
 * GPU. Also warns about a warm block above its budget, and about a `user_memory` below 2 MiB. */
void shuf__check_budgets(struct shuf__backend *backend, const struct shuf__config *config,
                         const struct shuf__log *log);

/* Logs a warning if the system does not allow to lend host memory to clients. */
void shuf__check_file_leases(const struct shuf__log *log);

/* Logs a warning if the limits of the daemon's control group cannot be read, and `host_memory` is a
 * part of the memory. */
void shuf__check_control_group(const struct shuf__config *config, const struct shuf__log *log);

/* The exit codes for a listener or a backend that cannot be opened. */
int shuf__exit_of_socket(shuf_status status);
int shuf__exit_of_backend(const struct shuf__config *config, shuf_status status);

#endif
