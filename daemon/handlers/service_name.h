/* SPDX-License-Identifier: MIT
 *
 * The name of a daemon among the daemons of one machine: the name of its socket without .sock. The
 * daemons share one configuration file, in which %i stands for the name.
 */
#ifndef SHUFD_SERVICE_NAME_H
#define SHUFD_SERVICE_NAME_H

#include <stdbool.h>
#include <stddef.h>

enum { SHUF__SERVICE_NAME = 108, SHUF__SERVICE_UNIT = 128 };

void shuf__service_name_of(const char *socket, char name[SHUF__SERVICE_NAME]);

/* Writes the unit of systemd for this socket. type: "socket" or "service". */
void shuf__service_unit_of(const char *socket, const char *type, char unit[SHUF__SERVICE_UNIT]);

/* Copies `text` to `out` and replaces each %i by the name. If the copy does not fit, returns false
 * and sets `out` to "". */
bool shuf__service_name_expand(const char *text, const char *name, char *out, size_t size);

#endif
