/* SPDX-License-Identifier: MIT
 *
 * Names and messages of the status table, the one function that writes an
 * error, and the one that makes a peer's words fit to show.
 */
#include "error.h"

#include <stdarg.h>
#include <stdio.h>

const char *shuf_status_name(shuf_status status)
{
    switch (status) {
#define X(name, number, message) \
    case SHUF_##name:            \
        return #name;
        SHUF_STATUS_MAP(X)
#undef X
    }
    return "UNKNOWN";
}

const char *shuf_status_message(shuf_status status)
{
    switch (status) {
#define X(name, number, message) \
    case SHUF_##name:            \
        return message;
        SHUF_STATUS_MAP(X)
#undef X
    }
    return "a status that this version does not know";
}

shuf_status shuf__fail(struct shuf__error *error, shuf_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(error->text, sizeof error->text, format, args);
    va_end(args);
    error->status = status;
    return status;
}

void shuf__make_printable(char *text)
{
    for (; *text; text++)
        if (*text < 0x20 || *text > 0x7e)
            *text = '?';
}
