/* SPDX-License-Identifier: MIT
 *
 * Runs the request of a verb, as a copy or by a lease. Writes the values to a file, or prints a
 * summary.
 */
#ifndef SHUF__RUN_REQUEST_H
#define SHUF__RUN_REQUEST_H

#include "summary.h"

/* Returns the exit code. Prints one line on failure. */
int shuf__run_request(const struct shuf__output_options *options);

/* Prints the summary that the options ask for. Without a daemon (NULL) it has no head line. Returns
 * the exit code. */
int shuf__print_summary(shuf *daemon, const struct shuf__summary *summary);

/* Returns EX_OK, or prints one line and returns the exit code if a summary could not be written to
 * standard error. main() checks standard output. */
int shuf__check_error_stream(void);

/* ---- the head line ---- */

/* Prints the first values of a result in one line, as many values as the terminal behind stdout has
 * room for. Prints nothing if stdout is not a terminal, or if the daemon does not have the values
 * any more. */
void shuf__head_line_print(shuf *daemon, const struct shuf__output_options *options);

/* ---- leases ---- */

struct shuf__lease_reading {
    shuf_lease lease; /* a copy; its data is no longer mapped. transport 0: no lease was taken */
    bool ends_match;  /* the first and last values equal those of the reply */
};

/* Leases the result, passes its values to `sink` (may be NULL) and gives the lease back. Fails as
 * shuf_each(): SHUF_CANCELLED when the sink stopped it. */
shuf_status shuf__read_by_lease(shuf *daemon, const struct shuf__output_options *options,
                                shuf_sink sink, void *context, struct shuf__lease_reading *reading);

#endif
