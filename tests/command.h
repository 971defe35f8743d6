/* SPDX-License-Identifier: MIT
 *
 * Runs a program as a person would: with its output collected, on pipes or on a
 * terminal, and with signals on the way. Every wait is bounded.
 */
#ifndef TESTS_COMMAND_H
#define TESTS_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum {
    COMMAND_TERMINAL_OUT = 1, /* stdout is a terminal */
    COMMAND_TERMINAL_ERR = 2, /* stderr is one */
    COMMAND_AS_NOBODY = 4,    /* of uid 65534; needs root, and argv[0] is a path */
    COMMAND_WAIT_MS = 120000,
};

struct command_stream {
    int fd; /* -1 at its end */
    char *bytes;
    size_t size, room; /* bytes has a NUL behind them */
};

struct command {
    pid_t pid;
    int status; /* its exit code, or 128 + the signal that ended it */
    struct command_stream out, err;
};

/* argv ends with NULL; argv[0] is looked for in PATH. `flags` of the enum above.
 * Ends the test process when the machine cannot do it. */
void command_start(struct command *command, unsigned flags, const char *const *argv);

/* Reads both streams to their end and waits; sends SIGKILL after COMMAND_WAIT_MS. */
void command_finish(struct command *command);

/* Both; then the exit status. */
int command_run(struct command *command, unsigned flags, const char *const *argv);

void command_free(struct command *command);

#endif
