/* SPDX-License-Identifier: MIT
 *
 * Runs a real shufd for a test: starts it in a new directory, connects to its socket, and stops it
 * by signals. Every wait has a timeout. The log of a failed daemon is printed. Needs no test
 * framework.
 */
#ifndef TESTS_HARNESS_H
#define TESTS_HARNESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    HARNESS_PATH = 96,
    HARNESS_ARGUMENTS = 16, /* extra arguments, at most */
    HARNESS_WAIT_MS = 60000,
    HARNESS_SKIP = 77, /* the exit code that ctest reports as skipped */
};

/* A listening socket that shufd inherits; `name` NULL: none. */
struct harness_socket {
    int fd;
    const char *name;
};

struct harness {
    char directory[HARNESS_PATH]; /* new; harness_stop() removes it */
    char socket[HARNESS_PATH];    /* directory/s */
    char log[HARNESS_PATH];       /* directory/log: the stderr of the daemon, of all its starts */
    const char *backend;
    const char *extra[HARNESS_ARGUMENTS + 1];
    struct harness_socket passed; /* set this after harness_prepare() */
    pid_t pid;                    /* 0 while the daemon does not run */
};

/* Starts `shufd --socket DIR/s --backend BACKEND EXTRA...` and returns when its socket accepts. A
 * GPU then computes all results (--host-results device), unless EXTRA has another --host-results.
 * `extra` ends with NULL, and may be NULL; its strings must outlive the harness. A failure prints
 * its reason to stderr and leaves nothing behind. */
bool harness_start(struct harness *h, const char *backend, const char *const *extra);

/* Makes only the directory and the paths, for a test that writes a file there (a configuration)
 * before harness_restart(). */
bool harness_prepare(struct harness *h, const char *backend, const char *const *extra);

/* Starts the daemon again, on the same socket and with the same arguments. */
bool harness_restart(struct harness *h);

/* Sends the signal (0: none) and returns the wait status of the daemon. If it has not ended within
 * HARNESS_WAIT_MS, kills it and returns -1. */
int harness_kill(struct harness *h, int signal);

/* Stops the daemon by SIGSTOP, and waits until all of its threads have stopped. Returns false if it
 * has ended. */
bool harness_pause(struct harness *h);

/* Lets a stopped daemon go on. */
void harness_continue(struct harness *h);

/* Ends a running daemon by SIGTERM and removes the directory. If its exit status was not 0, prints
 * its log to stderr and returns false. */
bool harness_stop(struct harness *h);

/* cmocka's fixtures: one daemon for all tests of a program, on the backend that main() chose. */
extern struct harness harness_shared;
extern const char *harness_backend;
int harness_start_shared(void **state);
int harness_stop_shared(void **state);

/* Whether that backend is a GPU. */
bool harness_is_cuda(void);

/* A monotonic clock. */
uint64_t harness_now_ms(void);

/* Returns a connected blocking socket, or -1 with errno. Its reads and writes fail with EAGAIN
 * after HARNESS_WAIT_MS. */
int harness_connect(const char *path);

/* Runs `shufd ARGUMENTS...` (NULL-ended, without argv[0]) to its end. Its stdout and stderr go to
 * `output`, truncated and with a final NUL. Returns the wait status, or -1 as harness_kill()
 * does. */
int harness_run(const char *const *arguments, char *output, size_t size);

/* Returns argv[1], or "cpu" without one. Ends the process with HARNESS_SKIP if that backend is not
 * present. */
const char *harness_backend_or_skip(int argc, char **argv);

#endif
