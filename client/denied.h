/* SPDX-License-Identifier: MIT
 *
 * The error for a user who may not connect. Its text names the socket's owner, group and mode, and
 * how the user can get access.
 */
#ifndef SHUF__DENIED_H
#define SHUF__DENIED_H

#include "error.h"

/* Fails with SHUF_DENIED. */
shuf_status shuf__fail_denied(const char *path, struct shuf__error *error);

#endif
