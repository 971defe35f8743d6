/* SPDX-License-Identifier: MIT
 *
 * Failures of shufctl: one line on stderr and an exit code of sysexits.h.
 */
#ifndef SHUF__EXIT_H
#define SHUF__EXIT_H

#include "daemon_options.h"
#include "shuf.h"

/* Prints "shufctl: ..." on stderr and returns `code`. */
int shuf__fail_with(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The exit code of a status. */
int shuf__exit_code(shuf_status status);

/* Prints the handle's message and returns the exit code of `status`. Where no daemon answers, it
 * also prints the command that starts one. */
int shuf__fail_call(const shuf *handle, shuf_status status,
                    const struct shuf__daemon_options *options);

/* Connects, and waits for a daemon at most options->wait_seconds. The caller closes *handle, also
 * after a failure. */
shuf_status shuf__connect(shuf **handle, const struct shuf__daemon_options *options);

/* The same; returns EX_OK, or prints one line and returns the exit code. */
int shuf__connect_or_fail(shuf **handle, const struct shuf__daemon_options *options);

#endif
