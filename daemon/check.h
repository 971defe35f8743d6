/* SPDX-License-Identifier: MIT
 *
 * What a start would find, without one; and the exit codes that the start shares
 * with it.
 */
#ifndef SHUFD_CHECK_H
#define SHUFD_CHECK_H

#include "config/config.h"

/* Looks at the socket's place and group, opens the backend and prints its device on
 * stdout. The exit code, EX_OK when a start would succeed; why not is logged. */
int shuf__check(const struct shuf__config *config, const struct shuf__log *log);

/* The exit codes of a socket that cannot be made and a backend that does not open. */
int shuf__exit_of_socket(shuf_status status);
int shuf__exit_of_backend(const struct shuf__config *config, shuf_status status);

#endif
