/* SPDX-License-Identifier: MIT
 *
 * A real shufd for a test: started in a directory of its own, reached over its
 * socket, stopped by signals. Every wait is bounded, and what the daemon wrote
 * is shown when it failed. Needs no test framework.
 */
#ifndef TESTS_HARNESS_H
#define TESTS_HARNESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum {
    HARNESS_PATH = 96,
    HARNESS_ARGUMENTS = 16, /* extra ones, at most */
    HARNESS_WAIT_MS = 60000,
    HARNESS_SKIP = 77, /* the exit code that ctest reports as skipped */
};

/* A listening socket for shufd to inherit; `name` NULL: none. */
struct harness_socket {
    int fd;
    const char *name;
};

struct harness {
    char directory[HARNESS_PATH]; /* fresh; removed by harness_stop */
    char socket[HARNESS_PATH];    /* directory/s */
    char log[HARNESS_PATH];       /* directory/log: what it wrote to stderr, all lives of it */
    const char *backend;
    const char *extra[HARNESS_ARGUMENTS + 1];
    struct harness_socket passed; /* set it after harness_prepare */
    pid_t pid;                    /* 0 while it does not run */
};

/* Starts `shufd --socket DIR/s --backend BACKEND EXTRA...` and returns when its
 * socket accepts. `extra` ends with NULL, may be NULL, and its strings must
 * outlive the harness. On failure says why on stderr and leaves nothing behind. */
bool harness_start(struct harness *h, const char *backend, const char *const *extra);

/* Makes the directory and the paths only: for a test that puts something there
 * (a configuration) before harness_restart. */
bool harness_prepare(struct harness *h, const char *backend, const char *const *extra);

/* Starts it again, on the same socket and with the same arguments. */
bool harness_restart(struct harness *h);

/* Sends the signal (0: none) and returns its wait status; -1, after a SIGKILL,
 * when it has not ended within HARNESS_WAIT_MS. */
int harness_kill(struct harness *h, int signal);

/* Ends it by SIGTERM where it still runs, and removes the directory. False when
 * it did not exit with 0; its log is then on stderr. */
bool harness_stop(struct harness *h);

/* cmocka's fixtures: one daemon for all tests of a program, on the backend main() names first. */
extern struct harness harness_shared;
extern const char *harness_backend;
int harness_start_shared(void **state);
int harness_stop_shared(void **state);

/* A connected blocking socket, whose reads and writes fail with EAGAIN after
 * HARNESS_WAIT_MS; -1 with errno. */
int harness_connect(const char *path);

/* Runs `shufd ARGUMENTS...` (NULL-ended, without argv[0]) to its end; what it
 * wrote to stdout and stderr goes to `output` (cut, NUL-ended). Its wait status,
 * or -1 as above. */
int harness_run(const char *const *arguments, char *output, size_t size);

/* argv[1], or "cpu" without one; ends the process with HARNESS_SKIP where that
 * backend is not present. */
const char *harness_backend_or_skip(int argc, char **argv);

#endif
