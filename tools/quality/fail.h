/* SPDX-License-Identifier: MIT
 *
 * How shuf-quality fails: one line on stderr and one of sysexits.h's codes. 1 is
 * kept for permutations that failed.
 */
#ifndef SHUF__QUALITY_FAIL_H
#define SHUF__QUALITY_FAIL_H

#include "error.h"

#include <stdbool.h>

enum { SHUF__EXIT_FAILED = 1 };

/* Writes "shuf-quality: ..." and returns `code`. */
int shuf__quality_fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same with the error's line and its status's code; EX_DATAERR where what was read is at
 * fault. */
int shuf__quality_fail_with(const struct shuf__error *error, shuf_status status, bool data);

#endif
