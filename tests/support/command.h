/* SPDX-License-Identifier: MIT
 *
 * Runs a program with its output collected, on pipes or on a terminal, and sends it signals. Every
 * wait has a timeout.
 */
#ifndef TESTS_COMMAND_H
#define TESTS_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum {
    COMMAND_TERMINAL_OUT = 1, /* stdout is a terminal */
    COMMAND_TERMINAL_ERR = 2, /* stderr is a terminal */
    COMMAND_AS_NOBODY = 4,    /* with uid 65534; needs root, and argv[0] must be a path */
    COMMAND_WAIT_MS = 120000,
};

struct command_stream {
    int fd; /* -1 after the end of the stream */
    char *bytes;
    size_t size, room; /* bytes ends with a NUL */
};

struct command {
    pid_t pid;
    int status; /* its exit code, or 128 + the signal that ended it */
    struct command_stream out, err;
};

/* argv ends with NULL. argv[0] is searched in PATH. `flags` is a set of the flags above. If the
 * machine cannot start the program, the test process ends. */
void command_start(struct command *command, unsigned flags, const char *const *argv);

/* Reads both streams until stderr has the text, and returns true. Returns false, and shows stderr,
 * if the text does not come within COMMAND_WAIT_MS, or before the end of both streams. */
bool command_await_err(struct command *command, const char *text);

/* Reads both streams to their end and waits for the program. Kills it after COMMAND_WAIT_MS. */
void command_finish(struct command *command);

/* Calls command_start() and command_finish(). Returns the exit status. */
int command_run(struct command *command, unsigned flags, const char *const *argv);

void command_free(struct command *command);

#endif
