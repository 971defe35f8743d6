/* SPDX-License-Identifier: MIT
 *
 * Failures of shuf-quality. The exit codes are those of exit.h, and 1 if the judged values failed.
 */
#ifndef SHUF__QUALITY_FAIL_H
#define SHUF__QUALITY_FAIL_H

#include "error.h"
#include "exit.h"

#include <stdbool.h>
#include <sysexits.h>

enum { SHUF__EXIT_FAILED = 1 };

/* Prints the error's line and returns the exit code of its status. With `data` the input is wrong,
 * and the code is EX_DATAERR. */
static inline int shuf__quality_fail_error(const struct shuf__error *error, shuf_status status,
                                           bool data)
{
    return shuf__fail_with(data ? EX_DATAERR : shuf__exit_code(status), "%s", error->text);
}

#endif
