/* SPDX-License-Identifier: MIT
 *
 * An error inside shufd: a status, and one line that names the field, its value and the expected
 * value. The function that finds the error writes this line. Its callers pass it up unchanged.
 */
#ifndef SHUF__ERROR_H
#define SHUF__ERROR_H

#include "shuf_status.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { SHUF__ERROR_TEXT = 512 };

struct shuf__error {
    shuf_status status;
    char text[SHUF__ERROR_TEXT]; /* one line, no newline at its end */
};

/* Writes the status and the text to *error. Cuts a text that is too long, and replaces characters
 * that would break the line. Returns `status`, so
 * a failing function can end with `return shuf__fail(error, SHUF_INVALID, ...)`. */
shuf_status shuf__fail(struct shuf__error *error, shuf_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The "s" of a plural after a number, as in "%d client%s". */
static inline const char *shuf__plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

/* Replaces control characters and invalid UTF-8 by '?'. Text of a peer or of a file must not break
 * a line, and must not control a terminal. */
void shuf__make_printable(char *text);

#ifdef __cplusplus
}
#endif

#endif
