/* SPDX-License-Identifier: MIT
 *
 * The command line of the verbs that only ask a daemon: --json and --socket.
 */
#ifndef SHUF__DAEMON_OPTIONS_H
#define SHUF__DAEMON_OPTIONS_H

#include <stdbool.h>

struct shuf__daemon_options {
    const char *socket; /* NULL: the default */
    bool json;
};

/* Ends the process as argp does, when asked for help or given a wrong option. */
void shuf__daemon_options(int argc, char **argv, const char *doc,
                          struct shuf__daemon_options *options);

#endif
