/* SPDX-License-Identifier: MIT
 *
 * Failures of shuf-quality: exit codes of exit.h, and 1 if the judged values failed.
 */
#ifndef SHUF__QUALITY_FAIL_H
#define SHUF__QUALITY_FAIL_H

#include "error.h"
#include "exit.h"

#include <stdbool.h>

enum { SHUF__EXIT_FAILED = 1 };

/* Prints the error's line and returns the exit code of its status. `data`: the input is at fault,
 * so the code is EX_DATAERR. */
int shuf__quality_fail_error(const struct shuf__error *error, shuf_status status, bool data);

#endif
