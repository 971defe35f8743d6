/* SPDX-License-Identifier: MIT
 *
 * See fail.h.
 */
#include "fail.h"

#include "exit.h"

#include <stdarg.h>
#include <stdio.h>
#include <sysexits.h>

int shuf__quality_fail(int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("shuf-quality: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    return code;
}

int shuf__quality_fail_with(const struct shuf__error *error, shuf_status status, bool data)
{
    return shuf__quality_fail(data ? EX_DATAERR : shuf__exit_code(status), "%s", error->text);
}
