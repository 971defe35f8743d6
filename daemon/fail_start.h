/* SPDX-License-Identifier: MIT
 *
 * The end of a daemon that cannot start. If a restart would not help, it first tells the waiting
 * clients the reason: the units do not start it again (RestartPreventExitStatus=), so these clients
 * would wait in vain.
 */
#ifndef SHUFD_FAIL_START_H
#define SHUFD_FAIL_START_H

#include "config/config.h"

/* Logs the error, and returns the exit code. The caller then ends the process with it; a library
 * that does not let it end is left after some seconds (end_guard.h). listening: the daemon's
 * socket, or -1 for the one that the service manager has passed, if there is one. */
int shuf__fail_start(const struct shuf__config *config, const struct shuf__log *log, int listening,
                     int exit_code, struct shuf__error *error);

/* The same for named keys. Clients do not get the reason, because it may name a key. */
int shuf__fail_start_of_keys(const struct shuf__config *config, const struct shuf__log *log,
                             int listening, struct shuf__error *error);

/* The same for a mistake in the options, which is in the log already. Does not end the process. */
void shuf__fail_start_of_options(const char *mistake);

#endif
