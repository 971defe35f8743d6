/* SPDX-License-Identifier: MIT
 *
 * The functions of the fault shim, except malloc() and its relatives: those of shim_calls.def, and
 * those that need more than a row there. The test `faults_imports` compares the functions here with
 * those that the programs import.
 */
#include "shim.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pthread.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int __open_2(const char *path, int flags);

#define CALL(type, name, parameters, arguments, error, failure) \
    EXPORT type name parameters                                 \
    {                                                           \
        REAL(name)                                              \
        return fails(#name, error) ? failure : real arguments;  \
    }
#include "shim_calls.def"
#undef CALL

/* ---- Files ----------------------------------------------------------------------- */

EXPORT int open(const char *path, int flags, ...)
{
    REAL(open)
    va_list arguments;
    va_start(arguments, flags);
    const mode_t mode = va_arg(arguments, mode_t);
    va_end(arguments);
    return fails("open", EMFILE) ? -1 : real(path, flags, mode);
}

EXPORT int openat(int at, const char *path, int flags, ...)
{
    REAL(openat)
    va_list arguments;
    va_start(arguments, flags);
    const mode_t mode = va_arg(arguments, mode_t);
    va_end(arguments);
    return fails("openat", EMFILE) ? -1 : real(at, path, flags, mode);
}

/* These commands never fail: to read flags, and to end a file lease. */
EXPORT int fcntl(int fd, int command, ...)
{
    REAL(fcntl)
    va_list arguments;
    va_start(arguments, command);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    const bool succeeds = command == F_GETFD || command == F_GETFL ||
                          (command == F_SETLEASE && (long)argument == F_UNLCK);
    return !succeeds && fails("fcntl", EINVAL) ? -1 : real(fd, command, argument);
}

EXPORT int ioctl(int fd, unsigned long request, ...)
{
    REAL(ioctl)
    va_list arguments;
    va_start(arguments, request);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    return fails("ioctl", ENOTTY) ? -1 : real(fd, request, argument);
}

static bool has_type(int fd, mode_t type)
{
    struct stat status;
    return syscall(SYS_fstat, fd, &status) == 0 && (status.st_mode & S_IFMT) == type;
}

/* Reads and writes of pipes and eventfds never fail here, because libuv relies on them. */
static bool can_fail(int fd)
{
    return has_type(fd, S_IFREG) || has_type(fd, S_IFSOCK);
}

EXPORT ssize_t read(int fd, void *out, size_t size)
{
    REAL(read)
    return can_fail(fd) && fails("read", EIO) ? -1 : real(fd, out, size);
}

EXPORT ssize_t write(int fd, const void *bytes, size_t size)
{
    REAL(write)
    return can_fail(fd) && fails("write", EIO) ? -1 : real(fd, bytes, size);
}

/* Only the last write to a file can make close() fail. The descriptor is closed even then. */
EXPORT int close(int fd)
{
    REAL(close)
    const bool is_written = has_type(fd, S_IFREG) && (fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY;
    const int result = real(fd);
    return is_written && fails("close", EIO) ? -1 : result;
}

/* Libraries import these names of the same functions. */
#define ALIAS(name) \
    extern __typeof__(name) alias_##name __asm__(#name "64") __attribute__((alias(#name)))

ALIAS(open);
ALIAS(openat);
ALIAS(fopen);
ALIAS(mmap);
ALIAS(fcntl);
ALIAS(fstat);
ALIAS(stat);
ALIAS(lstat);
ALIAS(pread);
ALIAS(pwrite);
ALIAS(ftruncate);
ALIAS(readdir);
ALIAS(scandir);

/* ---- Streams --------------------------------------------------------------------- */

/* The bytes in the buffer of the stream are lost, as after a failed write() inside libc. */
static void set_error(FILE *stream)
{
    enum { ERROR_SEEN = 0x20 }; /* _IO_ERR_SEEN of glibc */
    __fpurge(stream);
    stream->_flags |= ERROR_SEEN;
}

/* A loop that reads a stream line by line counts once, and fails before its first line. */
static _Thread_local const FILE *last_read;

static bool read_fails(const char *name, FILE *stream, const void *caller)
{
    const bool is_repeated = stream == last_read;
    last_read = stream;
    if (is_repeated || !fault_fails_in(name, EIO, caller))
        return false;
    set_error(stream);
    return true;
}

#define READING_CALL(type, name, parameters, arguments, failure)                                  \
    EXPORT type name parameters                                                                   \
    {                                                                                             \
        REAL(name)                                                                                \
        return read_fails(#name, stream, __builtin_return_address(0)) ? failure : real arguments; \
    }

READING_CALL(char *, fgets, (char *out, int size, FILE *stream), (out, size, stream), NULL)
READING_CALL(size_t, fread, (void *out, size_t size, size_t count, FILE *stream),
             (out, size, count, stream), 0)
READING_CALL(int, getc, (FILE * stream), (stream), EOF)
READING_CALL(ssize_t, __getdelim, (char **line, size_t *size, int end, FILE *stream),
             (line, size, end, stream), -1)
READING_CALL(int, vfscanf, (FILE * stream, const char *format, va_list arguments),
             (stream, format, arguments), EOF)

EXPORT int __isoc99_fscanf(FILE *stream, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int count = vfscanf(stream, format, arguments);
    va_end(arguments);
    return count;
}

EXPORT int fflush(FILE *stream)
{
    REAL(fflush)
    if (!fails("fflush", ENOSPC))
        return real(stream);
    set_error(stream ? stream : stdout); /* NULL: all streams */
    return EOF;
}

/* Fails only for a stream that was written. The stream is closed even then. */
EXPORT int fclose(FILE *stream)
{
    REAL(fclose)
    const bool is_written = __fwritable(stream);
    last_read = NULL;
    const int result = real(stream);
    return is_written && fails("fclose", ENOSPC) ? EOF : result;
}

/* ---- Names ----------------------------------------------------------------------- */

/* The functions of glibc crash if they get no memory, so only the whole call fails. */
#define NAME_CALL(type, name, parameters, arguments, failure) \
    EXPORT type name parameters                               \
    {                                                         \
        REAL(name)                                            \
        if (fails(#name, EMFILE))                             \
            return failure;                                   \
        fault_pause(true);                                    \
        type found = real arguments;                          \
        fault_pause(false);                                   \
        return found;                                         \
    }

NAME_CALL(struct passwd *, getpwuid, (uid_t uid), (uid), NULL)
NAME_CALL(struct passwd *, getpwnam, (const char *name), (name), NULL)
NAME_CALL(struct group *, getgrnam, (const char *name), (name), NULL)
NAME_CALL(int, getgrgid_r,
          (gid_t gid, struct group *group, char *text, size_t size, struct group **result),
          (gid, group, text, size, result), (*result = NULL, EMFILE))
NAME_CALL(int, getgrnam_r,
          (const char *name, struct group *group, char *text, size_t size, struct group **result),
          (name, group, text, size, result), (*result = NULL, EMFILE))
NAME_CALL(int, getpwuid_r,
          (uid_t uid, struct passwd *user, char *text, size_t size, struct passwd **result),
          (uid, user, text, size, result), (*result = NULL, EMFILE))
NAME_CALL(int, getgrouplist, (const char *name, gid_t group, gid_t *groups, int *count),
          (name, group, groups, count), -1)
NAME_CALL(int, group_member, (gid_t group), (group), 0)

/* AddressSanitizer calls this function in each new thread, and ends the process if it fails. */
EXPORT int pthread_getattr_np(pthread_t thread, pthread_attr_t *attributes)
{
    REAL(pthread_getattr_np)
    fault_pause(true);
    const int error = real(thread, attributes);
    fault_pause(false);
    return error;
}

/* ---- Processes ------------------------------------------------------------------- */

/* The program that is executed continues to count. */
EXPORT int execv(const char *path, char *const arguments[])
{
    REAL(execv)
    if (fails("execv", EACCES))
        return -1;
    fault_pass_on_calls();
    return real(path, arguments);
}

EXPORT int prctl(int operation, ...)
{
    REAL(prctl)
    unsigned long argument[4];
    va_list arguments;
    va_start(arguments, operation);
    for (int i = 0; i < 4; i++)
        argument[i] = va_arg(arguments, unsigned long);
    va_end(arguments);
    return fails("prctl", EPERM)
               ? -1
               : real(operation, argument[0], argument[1], argument[2], argument[3]);
}

EXPORT int clone(int (*run)(void *), void *stack, int flags, void *context, ...)
{
    REAL(clone)
    void *argument[3];
    va_list arguments;
    va_start(arguments, context);
    for (int i = 0; i < 3; i++)
        argument[i] = va_arg(arguments, void *);
    va_end(arguments);
    return fails("clone", EAGAIN)
               ? -1
               : real(run, stack, flags, context, argument[0], argument[1], argument[2]);
}

/* The child has ended, even if its status is lost. */
EXPORT pid_t waitpid(pid_t process, int *status, int options)
{
    REAL(waitpid)
    const pid_t ended = real(process, status, options);
    return fails("waitpid", ECHILD) ? -1 : ended;
}

EXPORT int pclose(FILE *stream)
{
    REAL(pclose)
    last_read = NULL;
    const int status = real(stream);
    return fails("pclose", ECHILD) ? -1 : status;
}

/* glibc before 2.36 has no function pidfd_open(), so shufd uses syscall() for it. */
EXPORT long syscall(long number, ...)
{
    REAL(syscall)
    long argument[6];
    va_list arguments;
    va_start(arguments, number);
    for (int i = 0; i < 6; i++)
        argument[i] = va_arg(arguments, long);
    va_end(arguments);
    if (number == SYS_pidfd_open && fails("pidfd_open", EMFILE))
        return -1;
    return real(number, argument[0], argument[1], argument[2], argument[3], argument[4],
                argument[5]);
}
