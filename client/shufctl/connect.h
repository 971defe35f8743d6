/* SPDX-License-Identifier: MIT
 *
 * Connecting to the daemon, and what shufctl prints if a call to it fails.
 */
#ifndef SHUF__CONNECT_H
#define SHUF__CONNECT_H

#include "daemon_options.h"
#include "shuf.h"

/* Connects, and waits for a daemon at most options->wait_ns. The caller closes *handle, also
 * after a failure. */
shuf_status shuf__connect(shuf **handle, const struct shuf__daemon_options *options);

/* The same without a line of progress. Any thread may call it. */
shuf_status shuf__connect_silently(shuf **handle, const struct shuf__daemon_options *options);

/* The same; returns EX_OK, or prints one line and returns the exit code. */
int shuf__connect_or_fail(shuf **handle, const struct shuf__daemon_options *options);

/* The length of a message of libshuf without its hint to start a daemon. shufctl has the command.
 */
int shuf__fault_length(const char *message);

/* Prints the handle's message and returns the exit code of `status`. If no daemon answers, it also
 * prints the command that starts one. */
int shuf__fail_call(const shuf *handle, shuf_status status,
                    const struct shuf__daemon_options *options);

#endif
