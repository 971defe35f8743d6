/* SPDX-License-Identifier: MIT
 *
 * The checks of --check, without a start, and the exit codes that the start uses too.
 */
#ifndef SHUFD_CHECK_H
#define SHUFD_CHECK_H

#include "backend.h"
#include "config/config.h"

/* Checks the socket's path and group, opens the backend and prints its device on stdout. Returns
 * the exit code: EX_OK when a start would succeed. Logs why it would not. */
int shuf__check(const struct shuf__config *config, const struct shuf__log *log);

/* Logs a warning for a budget that is too small for any result, or for its pool. */
void shuf__check_budgets(struct shuf__backend *backend, const struct shuf__config *config,
                         const struct shuf__log *log);

/* Logs a warning where host memory cannot be lent. */
void shuf__check_file_leases(const struct shuf__log *log);

/* The exit codes for a listener, and for a backend, that fail to open. */
int shuf__exit_of_socket(shuf_status status);
int shuf__exit_of_backend(const struct shuf__config *config, shuf_status status);

#endif
