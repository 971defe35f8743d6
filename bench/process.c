/* SPDX-License-Identifier: MIT
 *
 * See process.h. The tables are static arrays, because the signal handler reads them and must not
 * allocate.
 */
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILDREN = 128, FILES = 32, PATH = 96, WAIT_MS = 60000, POLL_MS = 2 };

static const int deadly[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

/* the process that owns the tables; a forked child has a copy that it must not use */
static pid_t owner;
static volatile pid_t children[CHILDREN];
static char directory[PATH];
static char files[FILES][PATH];
static volatile int file_count;

/* ---- Cleanup ---- */

static void tidy(void)
{
    if (getpid() != owner)
        return;
    for (int i = 0; i < CHILDREN; i++)
        if (children[i] > 0)
            kill(-children[i], SIGKILL);
    for (int i = 0; i < CHILDREN; i++)
        if (children[i] > 0) {
            waitpid(children[i], NULL, 0);
            children[i] = 0;
        }
    for (int i = 0; i < file_count; i++)
        unlink(files[i]);
    file_count = 0;
    if (directory[0] != '\0')
        rmdir(directory);
    directory[0] = '\0';
}

static void on_signal(int signal)
{
    tidy();
    raise(signal); /* SA_RESETHAND has restored the default action: the signal ends the process */
}

/* Installs the handlers on the first call. */
static void install_handlers(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    if (owner == getpid())
        return;
    owner = getpid();
    sigfillset(&action.sa_mask);
    for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++)
        sigaction(deadly[i], &action, NULL);
    signal(SIGPIPE, SIG_IGN);
    atexit(tidy);
}

void die(const char *format, ...)
{
    va_list arguments;
    fflush(stdout);
    fprintf(stderr, "%s: ", program_invocation_short_name);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(1);
}

/* ---- Files ---- */

static void make_directory(void)
{
    const char *temporary = getenv("TMPDIR");
    char path[PATH];
    /* The path of a socket has at most 108 bytes. */
    if (!temporary || strlen(temporary) > 48)
        temporary = "/tmp";
    snprintf(path, sizeof path, "%s/shuf-bench-XXXXXX", temporary);
    if (!mkdtemp(path))
        die("%s: %s", path, strerror(errno));
    memcpy(directory, path, sizeof path);
}

const char *process_file(const char *name)
{
    char path[2 * PATH];
    install_handlers();
    if (directory[0] == '\0')
        make_directory();
    int length = snprintf(path, sizeof path, "%s/%s", directory, name);
    for (int i = 0; i < file_count; i++)
        if (strcmp(files[i], path) == 0)
            return files[i];
    if (file_count == FILES || length < 0 || length >= PATH)
        die("%s: expected at most %d files and %d bytes of path", path, FILES, PATH - 1);
    memcpy(files[file_count], path, (size_t)length + 1);
    return files[file_count++];
}

const char *process_unread_file(const char *name)
{
    const char *path = process_file(name);
    if (mkfifo(path, 0600) != 0 || open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK) < 0)
        die("%s: %s", path, strerror(errno));
    return path;
}

/* ---- Processes ---- */

static void keep(pid_t pid)
{
    for (int i = 0; i < CHILDREN; i++)
        if (children[i] == 0) {
            children[i] = pid;
            return;
        }
    kill(pid, SIGKILL);
    die("expected at most %d processes", CHILDREN);
}

static void forget(pid_t pid)
{
    for (int i = 0; i < CHILDREN; i++)
        if (children[i] == pid)
            children[i] = 0;
}

/* The child leads its own process group, so the parent can kill all its descendants. Ctrl-C reaches
 * only the parent. */
static void begin_child(const sigset_t *mask)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setpgid(0, 0);
    for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++)
        signal(deadly[i], SIG_DFL);
    sigprocmask(SIG_SETMASK, mask, NULL);
    if (getppid() != owner)
        _exit(1);
}

/* Blocks all signals until the child is in the table, so a handler always finds it. */
pid_t process_fork(void)
{
    sigset_t all, before;
    install_handlers();
    fflush(NULL);
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    pid_t pid = fork();
    if (pid == 0) {
        begin_child(&before);
        return 0;
    }
    if (pid > 0) {
        setpgid(pid, pid);
        keep(pid);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (pid < 0)
        die("fork: %s", strerror(errno));
    return pid;
}

static _Noreturn void become(const char *const *argv)
{
    signal(SIGPIPE, SIG_DFL);
    execvp(argv[0], (char *const *)argv);
    fprintf(stderr, "%s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

pid_t process_start(const char *const *argv, const char *log)
{
    pid_t pid = process_fork();
    if (pid != 0)
        return pid;
    int out = log ? open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
    if (out >= 0) {
        dup2(out, STDOUT_FILENO);
        dup2(out, STDERR_FILENO);
    }
    become(argv);
}

bool process_ended(pid_t pid, int *status)
{
    if (waitpid(pid, status, WNOHANG) != pid)
        return false;
    forget(pid);
    return true;
}

int process_end(pid_t pid, int signal)
{
    const struct timespec pause = {.tv_nsec = POLL_MS * 1000000};
    double start = now_ns();
    int status;
    if (signal)
        kill(pid, signal);
    while (!process_ended(pid, &status)) {
        if (now_ns() - start > WAIT_MS * 1e6)
            kill(-pid, SIGKILL);
        nanosleep(&pause, NULL);
    }
    return status;
}

static char *read_all(int fd)
{
    size_t size = 0, room = 4096;
    char *text = malloc(room);
    ssize_t got = 0;
    while (text && (got = read(fd, text + size, room - size - 1)) > 0) {
        size += (size_t)got;
        if (room - size < 2048)
            text = realloc(text, room *= 2);
    }
    if (!text || got < 0)
        die("cannot read the output of a program: %s", strerror(errno));
    text[size] = '\0';
    return text;
}

char *process_output(const char *const *argv)
{
    int ends[2], status;
    if (pipe2(ends, O_CLOEXEC) != 0)
        die("pipe: %s", strerror(errno));
    pid_t pid = process_fork();
    if (pid == 0) {
        dup2(ends[1], STDOUT_FILENO);
        become(argv);
    }
    close(ends[1]);
    char *text = read_all(ends[0]);
    close(ends[0]);
    waitpid(pid, &status, 0);
    forget(pid);
    if (status == 0)
        return text;
    free(text);
    return NULL;
}

double process_memory(pid_t pid)
{
    char path[64], line[256];
    unsigned long long kib = 0;
    snprintf(path, sizeof path, "/proc/%d/smaps_rollup", (int)pid);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "Pss: %llu kB", &kib) == 1)
            break;
    if (file)
        fclose(file);
    return (double)kib * 1024;
}
