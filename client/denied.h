/* SPDX-License-Identifier: MIT
 *
 * The error for a user who may not connect. Its text names the socket's owner, group and mode, and
 * how the user can get access.
 */
#ifndef SHUF__DENIED_H
#define SHUF__DENIED_H

#include "error.h"

#include <stdbool.h>

/* Fails with SHUF_DENIED. */
shuf_status shuf__fail_denied(const char *path, struct shuf__error *error);

/* Whether the socket was made or changed in the last second. A service manager first makes it, and
 * then gives it to its group. */
bool shuf__is_new_socket(const char *path);

#endif
