/* SPDX-License-Identifier: MIT
 *
 * Names and messages of the status table. shuf__fail() writes an error. shuf__make_printable()
 * makes the text of a peer safe to print.
 */
#include "error.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
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
    shuf__make_printable(error->text);
    error->status = status;
    return status;
}

/* The UTF-8 sequences of several bytes, by the range of their first byte. The limits of the second
 * byte exclude overlong forms, surrogates, the control characters U+0080 to U+009F, and all above
 * U+10FFFF. Unicode 15, table 3-7. */
static const struct sequence {
    unsigned char first, last, second_least, second_most, length;
} sequences[] = {
    {0xc2, 0xc2, 0xa0, 0xbf, 2}, {0xc3, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
    {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
    {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
};

static bool is_continuation(unsigned char byte)
{
    return byte >> 6 == 2;
}

/* The number of bytes of the printable character at `text`; 0: there is none. */
static size_t printable_length(const unsigned char *text)
{
    if (text[0] < 0x80)
        return text[0] >= 0x20 && text[0] != 0x7f;
    for (size_t i = 0; i < sizeof sequences / sizeof *sequences; i++) {
        const struct sequence *s = &sequences[i];
        if (text[0] < s->first || text[0] > s->last)
            continue;
        bool valid = text[1] >= s->second_least && text[1] <= s->second_most;
        for (size_t k = 2; valid && k < s->length; k++)
            valid = is_continuation(text[k]);
        return valid ? s->length : 0;
    }
    return 0;
}

void shuf__make_printable(char *text)
{
    while (*text) {
        const size_t length = printable_length((const unsigned char *)text);
        if (length == 0)
            *text = '?';
        text += length ? length : 1;
    }
}
