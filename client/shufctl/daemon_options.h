/* SPDX-License-Identifier: MIT
 *
 * The options that every verb takes: how to reach a daemon, and --json. They are
 * all that the verbs take which only ask it something.
 */
#ifndef SHUF__DAEMON_OPTIONS_H
#define SHUF__DAEMON_OPTIONS_H

#include <argp.h>
#include <stdbool.h>
#include <stdint.h>

struct shuf__daemon_options {
    const char *socket;    /* NULL: the default */
    uint64_t wait_seconds; /* for a daemon that is not there yet */
    bool json;
};

/* For the `children` of a verb with options of its own; its input is a struct
 * shuf__daemon_options. It refuses arguments that are no options. */
extern const struct argp shuf__daemon_argp;

/* Ends the process as argp does, when asked for help or given a wrong option. */
void shuf__daemon_options(int argc, char **argv, const char *doc,
                          struct shuf__daemon_options *options);

#endif
