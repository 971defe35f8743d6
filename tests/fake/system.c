/* SPDX-License-Identifier: MIT
 *
 * A library for LD_PRELOAD that imitates another system. $SHUF_FAKE has one or more of these words:
 * - old_kernel: it lacks SO_PEERPIDFD, as before Linux 6.5, and SO_PASSRIGHTS, as before Linux
 *   6.16. The daemon then opens the process of a client by its PID, and gets the descriptors that a
 *   client sends.
 * - no_peer: the kernel does not tell who is at the other end of a socket.
 * - no_processes: there is no room for another process.
 * - hang_at_end: shufd hangs when it ends, as a driver may.
 * - hang_at_file: shufd hangs when it has written its file of metrics, as a disk may.
 * - hang_at_journal: shufd hangs when it sends a line to the journal, which may have stopped.
 */
#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif
#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

#define EXPORT __attribute__((visibility("default")))

static bool is_chosen(const char *word)
{
    const char *words = getenv("SHUF_FAKE");
    return words && strstr(words, word);
}

static int refuse(int error)
{
    errno = error;
    return -1;
}

/* ---- Sockets ---- */

static bool is_new_option(int name)
{
    return name == SO_PEERPIDFD || name == SO_PASSRIGHTS;
}

typedef int getsockopt_function(int fd, int level, int name, void *value, socklen_t *size);
typedef int setsockopt_function(int fd, int level, int name, const void *value, socklen_t size);

EXPORT int getsockopt(int fd, int level, int name, void *restrict value, socklen_t *restrict size)
{
    if (level == SOL_SOCKET && is_new_option(name) && is_chosen("old_kernel"))
        return refuse(ENOPROTOOPT);
    if (level == SOL_SOCKET && name == SO_PEERCRED && is_chosen("no_peer"))
        return refuse(ENOBUFS);
    return ((getsockopt_function *)dlsym(RTLD_NEXT, "getsockopt"))(fd, level, name, value, size);
}

EXPORT int setsockopt(int fd, int level, int name, const void *value, socklen_t size)
{
    if (level == SOL_SOCKET && is_new_option(name) && is_chosen("old_kernel"))
        return refuse(ENOPROTOOPT);
    return ((setsockopt_function *)dlsym(RTLD_NEXT, "setsockopt"))(fd, level, name, value, size);
}

/* ---- Processes. Threads do not use clone() of libc ---- */

typedef int clone_function(int (*run)(void *), void *stack, int flags, void *context, ...);

EXPORT int clone(int (*run)(void *), void *stack, int flags, void *context, ...)
{
    va_list rest;
    if (is_chosen("no_processes"))
        return refuse(EAGAIN);
    va_start(rest, context);
    void *const parent = va_arg(rest, void *), *const tls = va_arg(rest, void *),
                *const child = va_arg(rest, void *);
    va_end(rest);
    return ((clone_function *)dlsym(RTLD_NEXT, "clone"))(run, stack, flags, context, parent, tls,
                                                         child);
}

/* ---- Hanging ---- */

static void hang_if(const char *word)
{
    while (is_chosen(word) && !strcmp(program_invocation_short_name, "shufd"))
        pause();
}

__attribute__((destructor)) static void end(void)
{
    hang_if("hang_at_end");
}

EXPORT int rename(const char *old, const char *new)
{
    int (*const next)(const char *, const char *) =
        (int (*)(const char *, const char *))dlsym(RTLD_NEXT, "rename");
    hang_if("hang_at_file");
    return next(old, new);
}

/* The daemon looks for the journal before each line. */
EXPORT int access(const char *path, int mode)
{
    int (*const next)(const char *, int) = (int (*)(const char *, int))dlsym(RTLD_NEXT, "access");
    if (strcmp(path, "/run/systemd/journal/socket") == 0)
        hang_if("hang_at_journal");
    return next(path, mode);
}
