/* SPDX-License-Identifier: MIT
 *
 * The options of every verb: the socket, the wait for a daemon, and --json except for `top`.
 */
#ifndef SHUF__DAEMON_OPTIONS_H
#define SHUF__DAEMON_OPTIONS_H

#include <argp.h>
#include <stdbool.h>
#include <stdint.h>

struct shuf__daemon_options {
    const char *socket; /* NULL: the default */
    uint64_t wait_ns;   /* for a daemon that does not answer yet */
    bool json;
    bool quiet; /* prints only errors and requested output */
};

/* For the `children` of a verb with more options. Its input is a struct shuf__daemon_options. It
 * rejects arguments that are no options. */
extern const struct argp shuf__daemon_argp;

/* The same without --json. */
extern const struct argp shuf__connection_argp;

/* For a verb without other options. Ends the process as argp does for --help and for a wrong
 * option. */
void shuf__daemon_options(int argc, char **argv, const char *doc,
                          struct shuf__daemon_options *options);

#endif
