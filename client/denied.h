/* SPDX-License-Identifier: MIT
 *
 * Why a user may not connect: whose the socket is, in words that tell an
 * operator what to change.
 */
#ifndef SHUF__DENIED_H
#define SHUF__DENIED_H

#include "error.h"

/* SHUF_DENIED. */
shuf_status shuf__denied(const char *path, struct shuf__error *error);

#endif
