/* SPDX-License-Identifier: MIT
 *
 * See exit.h.
 */
#include "exit.h"

#include "error.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sysexits.h>

enum { TEXT = 8192 }; /* more than two paths */

const char *shuf__program_name = "shuf";
void (*shuf__before_failure)(void);

static const struct {
    shuf_status status;
    int code;
} codes[] = {
    {SHUF_OK, EX_OK},
    {SHUF_INVALID, EX_USAGE},
    {SHUF_NO_DAEMON, EX_UNAVAILABLE},
    {SHUF_BUSY, EX_TEMPFAIL},
    {SHUF_DENIED, EX_NOPERM},
    {SHUF_NO_MEMORY, EX_OSERR},
    {SHUF_DEVICE, EX_OSERR},
    {SHUF_VERSION, EX_PROTOCOL},
    {SHUF_PROTOCOL, EX_PROTOCOL},
    {SHUF_TIMEOUT, EX_TEMPFAIL},
    {SHUF_CANCELLED, EX_TEMPFAIL},
    {SHUF_IO, EX_IOERR},
    {SHUF_INTERNAL, EX_SOFTWARE},
};

int shuf__exit_code(shuf_status status)
{
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i].status == status)
            return codes[i].code;
    return EX_SOFTWARE;
}

int shuf__fail_with(int code, const char *format, ...)
{
    va_list args;
    char text[TEXT];
    if (shuf__before_failure)
        shuf__before_failure();
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    shuf__make_printable(text);
    fprintf(stderr, "%s: %s\n", shuf__program_name, text);
    return code;
}
