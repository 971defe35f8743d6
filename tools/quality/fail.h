/* SPDX-License-Identifier: MIT
 *
 * How shuf-quality fails: as exit.h says, and with 1 where the judged values failed.
 */
#ifndef SHUF__QUALITY_FAIL_H
#define SHUF__QUALITY_FAIL_H

#include "error.h"
#include "exit.h"

#include <stdbool.h>

enum { SHUF__EXIT_FAILED = 1 };

/* Prints the error's line and returns its status's code; EX_DATAERR where what was read is at
 * fault. */
int shuf__quality_fail_error(const struct shuf__error *error, shuf_status status, bool data);

#endif
