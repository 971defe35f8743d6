/* SPDX-License-Identifier: MIT
 *
 * The command that starts a daemon where shufctl looked for one in vain: to be
 * copied into a shell, so it is told only where it works.
 */
#ifndef SHUF__START_H
#define SHUF__START_H

#include <stdbool.h>

enum { SHUF__START_COMMAND = 512 }; /* holds the longest path of a socket, each byte quoted */

/* Writes the command for a daemon on `path`; `given` is what --socket said, NULL without it. False
 * where it would not serve: something else has that name, or the directory is missing. */
bool shuf__start_command(const char *path, const char *given, char command[SHUF__START_COMMAND]);

#endif
