/* SPDX-License-Identifier: MIT
 *
 * The command that starts a daemon on the socket that shufctl tried. A user can copy it into a
 * shell, so it is printed only if it would work. If systemd has the units of shufd, these start the
 * daemons of /run/shufd.
 */
#ifndef SHUF__START_COMMAND_H
#define SHUF__START_COMMAND_H

#include <stdbool.h>

enum { SHUF__START_COMMAND = 512 }; /* fits the longest socket path with each byte quoted */

/* Writes the command for a daemon on `path`. given: the value of --socket, or NULL. Returns false
 * if a daemon cannot serve there: the file is not a socket, or the directory is missing. */
bool shuf__start_command(const char *path, const char *given, char command[SHUF__START_COMMAND]);

#endif
