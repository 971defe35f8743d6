/* SPDX-License-Identifier: MIT
 *
 * Connecting to the daemon, and what shufctl prints if a call to it fails: the command that starts
 * a daemon.
 */
#ifndef SHUF__CONNECT_H
#define SHUF__CONNECT_H

#include "shuf.h"
#include "verb_options.h"

#include <stdbool.h>
#include <stddef.h>

/* Connects, and waits for a daemon at most options->wait_ns. The caller closes *handle, also
 * after a failure. */
shuf_status shuf__connect(shuf **handle, const struct shuf__daemon_options *options);

/* The same without a line of progress. Any thread may call it. */
shuf_status shuf__connect_silently(shuf **handle, const struct shuf__daemon_options *options);

/* The same; returns EX_OK, or prints one line and returns the exit code. */
int shuf__connect_or_fail(shuf **handle, const struct shuf__daemon_options *options);

/* The length of a message of libshuf without its hint to start a daemon. shufctl has the command.
 */
int shuf__fault_length(const char *message);

/* Prints the handle's message and returns the exit code of `status`. If no daemon answers, it also
 * prints the command that starts one. */
int shuf__fail_call(const shuf *handle, shuf_status status,
                    const struct shuf__daemon_options *options);

/* ---- The command that starts a daemon ---- */

/* A user can copy the command into a shell, so shufctl prints it only if it would work. If systemd
 * has the units of shufd, the command for a socket in /run/shufd starts these units. If their user
 * or group is missing, it first makes both. Only root can start the units, so another user who has
 * named no socket first gets the command for a daemon of its own. */

enum { SHUF__START_COMMAND = 512 }; /* fits the longest socket path with each byte quoted */

/* Makes the user and the group of the units, by the installed sysusers.d/shufd.conf. */
#define SHUF__MAKE_USER "systemd-sysusers"

/* True if the socket belongs to the units of systemd. */
bool shuf__is_of_units(const char *path);

enum { SHUF__UNIT_NAME = 144 };

/* Writes the name of the units of the socket without .service or .socket: "shufd" or "shufd@NAME".
 * False: the socket is of no unit. */
bool shuf__unit_of_socket(const char *path, char unit[SHUF__UNIT_NAME]);

/* True if there is no such socket, but daemons of GPUs. A client takes the only one, except if it
 * names another GPU. So the user must choose a daemon. */
bool shuf__must_choose_daemon(const char *path);

/* True if this process has the same PID namespace as the daemon, so the PID of the daemon names the
 * daemon here too. False if that is unknown. */
bool shuf__shares_namespace(const shuf_daemon *daemon);

/* Writes the command by which the daemon of the socket reads its configuration again, and who may
 * run the command if this user may not. */
void shuf__reload_command(const char *path, const shuf_daemon *daemon,
                          char command[SHUF__START_COMMAND]);

/* Writes the command for a daemon on `path`. given: the value of --socket, or NULL. Returns false
 * if a daemon cannot serve there: the file is not a socket, the directory is missing, or the user
 * must choose a daemon. */
bool shuf__start_command(const char *path, const char *given, char command[SHUF__START_COMMAND]);

/* ---- The files of units ---- */

/* The files of the units of systemd: their folders in the order of systemd.unit(5). shufctl reads
 * these folders, because `systemctl` takes longer and needs a running systemd. $SHUFD_UNITS names a
 * folder that replaces / for tests. */

enum { SHUF__UNIT_FOLDERS = 6, SHUF__UNIT_PATH = 512 };

/* Writes FOLDER/NAME for one of the SHUF__UNIT_FOLDERS folders. */
void shuf__unit_path(char path[SHUF__UNIT_PATH], size_t folder, const char *name);

/* True if the administrator has masked the unit. */
bool shuf__unit_is_masked(const char *name);

/* True if systemd starts shufd.target at the boot. */
bool shuf__units_are_enabled(void);

/* True if the user and the group shufd exist. The units fail without them. */
bool shuf__units_have_user(void);

#endif
