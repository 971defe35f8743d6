/* SPDX-License-Identifier: MIT
 *
 * See harness.h.
 */
#include "support/harness.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

enum { POLL_MS = 5 };

static void pause_ms(long ms)
{
    struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

/* $SHUF_TEST_SHUFD may name a program to start in place of shufd, such as one that traces shufd. */
static const char *shufd_path(void)
{
    const char *path = getenv("SHUF_TEST_SHUFD");
    return path ? path : SHUFD_PATH;
}

/* Passes the socket to the child as a service manager does (sd_listen_fds(3)). With two names,
 * which a colon divides, passes it twice. */
static void pass_socket(const struct harness_socket *socket)
{
    char pid[16];
    if (!socket || !socket->name)
        return;
    snprintf(pid, sizeof pid, "%ld", (long)getpid());
    setenv("LISTEN_PID", pid, 1);
    setenv("LISTEN_FDS", strchr(socket->name, ':') ? "2" : "1", 1);
    setenv("LISTEN_FDNAMES", socket->name, 1);
    if (socket->fd == 3)
        fcntl(3, F_SETFD, 0);
    else
        dup2(socket->fd, 3);
    if (strchr(socket->name, ':'))
        dup2(3, 4);
}

/* Runs in the child: executes shufd, which dies when the test process dies. */
static _Noreturn void become_shufd(const char *const *arguments, int out, int err,
                                   const struct harness_socket *socket)
{
    /* Ignores a configuration file of the machine. */
    const char *argv[HARNESS_ARGUMENTS + 9] = {shufd_path(), "--no-config"};
    for (int i = 0; i < HARNESS_ARGUMENTS + 6 && arguments[i]; i++)
        argv[i + 2] = arguments[i];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    pass_socket(socket);
    execv(argv[0], (char *const *)argv);
    dprintf(STDERR_FILENO, "%s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

static pid_t spawn(const char *const *arguments, int out, int err,
                   const struct harness_socket *socket)
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        become_shufd(arguments, out, err, socket);
    if (pid < 0)
        perror("fork");
    return pid;
}

/* Returns the wait status, or -1 if the process still runs after `ms`. */
static int wait_for(pid_t pid, long ms)
{
    int status;
    for (long waited = 0;; waited += POLL_MS) {
        if (waitpid(pid, &status, WNOHANG) == pid)
            return status;
        if (waited >= ms)
            return -1;
        pause_ms(POLL_MS);
    }
}

static int wait_or_kill(pid_t pid)
{
    int status = wait_for(pid, HARNESS_WAIT_MS);
    if (status == -1) {
        fprintf(stderr, "shufd (pid %d) did not end within %d ms\n", (int)pid, HARNESS_WAIT_MS);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
    return status;
}

static void show_log(const struct harness *h)
{
    char line[512];
    FILE *file = fopen(h->log, "re");
    while (file && fgets(line, sizeof line, file))
        fprintf(stderr, "    shufd| %s", line);
    if (file)
        fclose(file);
}

static void remove_directory(const char *path)
{
    DIR *directory = opendir(path);
    struct dirent *entry;
    while (directory && (entry = readdir(directory)) != NULL)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlinkat(dirfd(directory), entry->d_name, 0);
    if (directory)
        closedir(directory);
    rmdir(path);
}

int harness_connect(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct timeval limit = {.tv_sec = HARNESS_WAIT_MS / 1000};
    if ((size_t)snprintf(address.sun_path, sizeof address.sun_path, "%s", path) >=
        sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0) {
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
        return fd;
    }
    int cause = errno;
    if (fd >= 0)
        close(fd);
    errno = cause;
    return -1;
}

/* Waits until the daemon has closed the probing connection too, so that no test counts this
 * connection or its descriptor. */
static bool is_listening(const char *path)
{
    char byte;
    int fd = harness_connect(path);
    if (fd < 0)
        return false;
    shutdown(fd, SHUT_WR);
    while (read(fd, &byte, 1) > 0)
        continue;
    close(fd);
    return true;
}

static bool wait_until_listening(struct harness *h)
{
    for (long waited = 0; waited < HARNESS_WAIT_MS; waited += POLL_MS) {
        if (is_listening(h->socket))
            return true;
        int status;
        if (waitpid(h->pid, &status, WNOHANG) == h->pid) {
            fprintf(stderr, "shufd ended before it listened, wait status 0x%x\n", status);
            h->pid = 0;
            return false;
        }
        pause_ms(POLL_MS);
    }
    fprintf(stderr, "shufd (pid %d) did not listen within %d ms\n", (int)h->pid, HARNESS_WAIT_MS);
    return false;
}

bool harness_prepare(struct harness *h, const char *backend, const char *const *extra)
{
    const char *temporary = getenv("TMPDIR");
    *h = (struct harness){.backend = backend};
    for (int i = 0; extra && i < HARNESS_ARGUMENTS && extra[i]; i++)
        h->extra[i] = extra[i];
    /* the path of a socket has at most 108 bytes */
    if (!temporary || strlen(temporary) > 64)
        temporary = "/tmp";
    snprintf(h->directory, sizeof h->directory, "%s/shuf-test-XXXXXX", temporary);
    if (!mkdtemp(h->directory)) {
        perror(h->directory);
        return false;
    }
    snprintf(h->socket, sizeof h->socket, "%.90s/s", h->directory);
    snprintf(h->log, sizeof h->log, "%.90s/log", h->directory);
    return true;
}

static bool has_extra(const struct harness *h, const char *option)
{
    for (int i = 0; h->extra[i]; i++)
        if (strcmp(h->extra[i], option) == 0)
            return true;
    return false;
}

bool harness_restart(struct harness *h)
{
    const char *arguments[HARNESS_ARGUMENTS + 7] = {"--socket", h->socket};
    int count = 2;
    if (h->backend) {
        arguments[count++] = "--backend";
        arguments[count++] = h->backend;
    }
    if (h->backend && strncmp(h->backend, "cuda", 4) == 0 && !has_extra(h, "--host-results")) {
        arguments[count++] = "--host-results";
        arguments[count++] = "device";
    }
    for (int i = 0; h->extra[i]; i++)
        arguments[count++] = h->extra[i];
    int log = open(h->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (log < 0) {
        perror(h->log);
        return false;
    }
    h->pid = spawn(arguments, log, log, &h->passed);
    close(log);
    if (h->pid > 0 && wait_until_listening(h))
        return true;
    show_log(h);
    if (h->pid > 0) {
        kill(h->pid, SIGKILL);
        waitpid(h->pid, NULL, 0);
    }
    h->pid = 0;
    return false;
}

bool harness_start(struct harness *h, const char *backend, const char *const *extra)
{
    if (!harness_prepare(h, backend, extra))
        return false;
    if (harness_restart(h))
        return true;
    remove_directory(h->directory);
    return false;
}

int harness_kill(struct harness *h, int signal)
{
    if (signal)
        kill(h->pid, signal);
    int status = wait_or_kill(h->pid);
    h->pid = 0;
    return status;
}

bool harness_pause(struct harness *h)
{
    int status;
    return kill(h->pid, SIGSTOP) == 0 && waitpid(h->pid, &status, WUNTRACED) == h->pid &&
           WIFSTOPPED(status);
}

void harness_continue(struct harness *h)
{
    kill(h->pid, SIGCONT);
}

bool harness_stop(struct harness *h)
{
    int status = h->pid ? harness_kill(h, SIGTERM) : 0;
    if (status != 0) {
        fprintf(stderr, "shufd ended with wait status 0x%x\n", (unsigned)status);
        show_log(h);
    }
    remove_directory(h->directory);
    return status == 0;
}

int harness_run(const char *const *arguments, char *output, size_t size)
{
    FILE *file = tmpfile();
    if (!file) {
        perror("tmpfile");
        return -1;
    }
    fcntl(fileno(file), F_SETFD, FD_CLOEXEC); /* shufd gets only copies of it */
    pid_t pid = spawn(arguments, fileno(file), fileno(file), NULL);
    int status = pid > 0 ? wait_or_kill(pid) : -1;
    rewind(file);
    output[fread(output, 1, size - 1, file)] = '\0';
    fclose(file);
    return status;
}

const char *harness_backend_or_skip(int argc, char **argv)
{
    const char *backend = argc > 1 ? argv[1] : "cpu";
    const char *arguments[] = {"--backend", backend, "--socket", "/tmp/none", "--check", NULL};
    char output[512];
    int status = harness_run(arguments, output, sizeof output);
    fprintf(stderr, "%s", output);
    if (WIFEXITED(status) && WEXITSTATUS(status) == EX_OK)
        return backend;
    exit(WIFEXITED(status) && WEXITSTATUS(status) == EX_UNAVAILABLE ? HARNESS_SKIP : EXIT_FAILURE);
}

struct harness harness_shared;
const char *harness_backend;

int harness_start_shared(void **state)
{
    (void)state;
    return harness_start(&harness_shared, harness_backend, NULL) ? 0 : -1;
}

int harness_stop_shared(void **state)
{
    (void)state;
    return harness_stop(&harness_shared) ? 0 : -1;
}

bool harness_is_cuda(void)
{
    return strncmp(harness_backend, "cuda", 4) == 0;
}

uint64_t harness_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}
