/* SPDX-License-Identifier: MIT
 *
 * An error inside shufd: a status, and one line that names the field, its value and the expected
 * value. The function that finds the error writes this line. Its callers pass it up unchanged.
 */
#ifndef SHUF__ERROR_H
#define SHUF__ERROR_H

#include "shuf_status.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

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

/* ---- Causes ---- */

/* Whether a call failed for lack of memory or descriptors, or by an error of a device (EIO). The
 * object of the call then may exist, so it must not count as missing. */
static inline bool shuf__is_system_failure(int cause)
{
    return cause == ENOMEM || cause == EMFILE || cause == ENFILE || cause == EIO;
}

/* Whether this process is the service of a unit: systemd sets the variable for each service. */
static inline bool shuf__is_in_unit(void)
{
    return getenv("INVOCATION_ID") != NULL;
}

/* Advice to append to a failure at this path: "", or that the sandbox of the unit may hide it. */
static inline const char *shuf__advice_of_sandbox(const char *path)
{
    static const char *const hidden[] = {"/home/", "/root/", "/run/user/", "/tmp/", "/var/tmp/"};
    for (size_t i = 0; shuf__is_in_unit() && i < sizeof hidden / sizeof *hidden; i++)
        if (strncmp(path, hidden[i], strlen(hidden[i])) == 0)
            return "; the unit may hide it (ProtectHome=, PrivateTmp=): choose another directory";
    return "";
}

#ifdef __cplusplus
}
#endif

#endif
