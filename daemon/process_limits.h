/* SPDX-License-Identifier: MIT
 *
 * The limits of the process (getrlimit(2)) with which the daemon can serve.
 */
#ifndef SHUFD_PROCESS_LIMITS_H
#define SHUFD_PROCESS_LIMITS_H

#include "config/config.h"
#include "error.h"

/* Raises the limits of open files and of the size of files. Fails with SHUF_IO if a limit is too
 * low. */
shuf_status shuf__limits_check(const struct shuf__config *config, struct shuf__error *error);

#endif
