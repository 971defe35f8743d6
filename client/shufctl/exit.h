/* SPDX-License-Identifier: MIT
 *
 * How shufctl fails: one line on stderr and one of sysexits.h's codes.
 */
#ifndef SHUF__EXIT_H
#define SHUF__EXIT_H

#include "daemon_options.h"
#include "shuf.h"

/* Writes "shufctl: ..." and returns `code`. */
int shuf__fail_with(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The exit code of a status. */
int shuf__exit_code(shuf_status status);

/* Writes the handle's message, with the command that starts a daemon when none
 * answers where one could, and returns the status's code. */
int shuf__fail_call(const shuf *handle, shuf_status status,
                    const struct shuf__daemon_options *options);

/* Connects, waiting for a daemon as the options say. *handle is to be closed either way. */
shuf_status shuf__connect(shuf **handle, const struct shuf__daemon_options *options);

/* The same, or fails as above; 0 or the exit code. */
int shuf__connect_or_fail(shuf **handle, const struct shuf__daemon_options *options);

#endif
