/* SPDX-License-Identifier: MIT
 *
 * See command.h.
 */
#include "support/command.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static _Noreturn void exit_with_error(const char *call)
{
    perror(call);
    exit(EXIT_FAILURE);
}

/* Makes a pipe. Returns the read end for the test. *theirs is the write end for the program. */
static int make_pipe(int *child_end)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0)
        exit_with_error("pipe");
    *child_end = fds[1];
    return fds[0];
}

static int make_terminal(int *child_end)
{
    char name[128];
    int fd = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 || grantpt(fd) != 0 || unlockpt(fd) != 0 || ptsname_r(fd, name, sizeof name) != 0)
        exit_with_error("posix_openpt");
    *child_end = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (*child_end < 0)
        exit_with_error(name);
    return fd;
}

/* Opens the program before the change of user, because another user may not have access to its
 * folder. */
static void execute_as_nobody(const char *const *argv)
{
    int program = open(argv[0], O_PATH | O_CLOEXEC);
    if (program >= 0 && setgid(65534) == 0 && setuid(65534) == 0)
        fexecve(program, (char *const *)argv, environ);
}

static _Noreturn void execute(unsigned flags, const char *const *argv, int out, int err)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_DFL);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    if (flags & COMMAND_AS_NOBODY)
        execute_as_nobody(argv);
    else
        execvp(argv[0], (char *const *)argv);
    dprintf(STDERR_FILENO, "%s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

void command_start(struct command *command, unsigned flags, const char *const *argv)
{
    int out, err;
    *command = (struct command){0};
    command->out.fd = flags & COMMAND_TERMINAL_OUT ? make_terminal(&out) : make_pipe(&out);
    command->err.fd = flags & COMMAND_TERMINAL_ERR ? make_terminal(&err) : make_pipe(&err);
    fflush(NULL);
    command->pid = fork();
    if (command->pid == 0)
        execute(flags, argv, out, err);
    if (command->pid < 0)
        exit_with_error("fork");
    close(out);
    close(err);
}

/* A read from a terminal fails with EIO after the other side has closed it. */
static void read_some(struct command_stream *stream)
{
    enum { STEP = 65536 };
    if (stream->room - stream->size <= STEP) {
        stream->room = 2 * stream->room + STEP + 1;
        stream->bytes = realloc(stream->bytes, stream->room);
        if (!stream->bytes)
            exit_with_error("realloc");
    }
    char *bytes = stream->bytes;
    ssize_t got = read(stream->fd, bytes + stream->size, STEP);
    if (got < 0 && errno == EINTR)
        return;
    if (got > 0) {
        stream->size += (size_t)got;
    } else {
        close(stream->fd);
        stream->fd = -1;
    }
    bytes[stream->size] = '\0';
}

static long now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static bool has_open_stream(const struct command *command)
{
    return command->out.fd >= 0 || command->err.fd >= 0;
}

/* Reads what comes until `end`. Returns false if nothing came. */
static bool read_streams(struct command *command, long end)
{
    struct pollfd fds[] = {{.fd = command->out.fd, .events = POLLIN},
                           {.fd = command->err.fd, .events = POLLIN}};
    const long left = end - now_ms();
    if (poll(fds, 2, left > 0 ? (int)left : 0) == 0)
        return false;
    if (command->out.fd >= 0 && fds[0].revents)
        read_some(&command->out);
    if (command->err.fd >= 0 && fds[1].revents)
        read_some(&command->err);
    return true;
}

bool command_await_err(struct command *command, const char *text)
{
    const long end = now_ms() + COMMAND_WAIT_MS;
    while (!command->err.bytes || !strstr(command->err.bytes, text)) {
        if (!has_open_stream(command) || !read_streams(command, end)) {
            fprintf(stderr, "expected: %s\nbut stderr was: %s\n", text,
                    command->err.bytes ? command->err.bytes : "");
            return false;
        }
    }
    return true;
}

void command_finish(struct command *command)
{
    long end = now_ms() + COMMAND_WAIT_MS;
    int status;
    while (has_open_stream(command)) {
        if (!read_streams(command, end)) {
            fprintf(stderr, "a program did not end within %d ms\n", COMMAND_WAIT_MS);
            kill(command->pid, SIGKILL);
            end = now_ms() + 1000;
        }
    }
    waitpid(command->pid, &status, 0);
    command->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int command_run(struct command *command, unsigned flags, const char *const *argv)
{
    command_start(command, flags, argv);
    command_finish(command);
    return command->status;
}

void command_free(struct command *command)
{
    free(command->out.bytes);
    free(command->err.bytes);
    command->out.bytes = command->err.bytes = NULL;
}
