/* SPDX-License-Identifier: MIT
 *
 * The name of a daemon among those of one machine: that of its socket, without .sock. The daemons
 * share one configuration, in which %i stands for the name.
 */
#ifndef SHUFD_SERVICE_NAME_H
#define SHUFD_SERVICE_NAME_H

#include <stdbool.h>
#include <stddef.h>

enum { SHUF__SERVICE_NAME = 108 };

void shuf__service_name_of(const char *socket, char name[SHUF__SERVICE_NAME]);

/* Copies `text` with each %i replaced; false, and "", where it does not fit. */
bool shuf__service_name_expand(const char *text, const char *name, char *out, size_t size);

#endif
