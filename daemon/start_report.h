/* SPDX-License-Identifier: MIT
 *
 * The messages of a daemon that is ready to serve, and the end of one that cannot start. If a
 * restart would not help, such a daemon first tells the waiting clients the reason: the units do
 * not start it again (RestartPreventExitStatus=), so these clients would wait in vain.
 */
#ifndef SHUFD_START_REPORT_H
#define SHUFD_START_REPORT_H

#include "backend.h"
#include "config/config.h"
#include "net/listener.h"

#include <stdbool.h>

enum { SHUF__UNUSED_TEXT = 384 };

/* The keys socket, socket_mode and socket_group have no effect on a socket that the service manager
 * passes. Its unit has settings for the same. True if the key has no effect on the listener. Writes
 * the end of a sentence about the key: "has no effect, because ...; set SETTING ...". */
bool shuf__socket_key_is_unused(const struct shuf__listener *listener, enum shuf__config_key key,
                                char text[SHUF__UNUSED_TEXT]);

/* Logs the path of the socket, and the setting that gave it: clients with another environment may
 * look for another path. */
void shuf__report_socket(const struct shuf__listener *listener, const struct shuf__config *config,
                         const struct shuf__log *log);

/* Tells the service manager that the daemon is ready. The faults: of the last reload and of the
 * socket, or "". */
void shuf__report_ready(const struct shuf__listener *listener, const struct shuf__backend *backend,
                        const char *reload_fault, const char *socket_fault);

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
