/* SPDX-License-Identifier: MIT
 *
 * A library for LD_PRELOAD. It counts those calls of a process that can fail, such as malloc(), and
 * makes one of them fail. Environment variables select the call:
 *
 *   SHUF_FAULT_PROGRAM  the program's name; the shim does nothing in others
 *   SHUF_FAULT_AT       the number of the call that fails, from 1 on; 0: none
 *   SHUF_FAULT_REPORT   a file for the name of the call that failed and the library that made it.
 *                       With SHUF_FAULT_AT=0 for the number of calls, and then for the numbers of
 *                       those that are the first ones from their chain of callers
 *
 * The rows CALL below have the functions that fail before they do anything, and other functions
 * follow. The test `faults_imports` compares them with those that the programs import.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pthread.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
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

#define EXPORT __attribute__((visibility("default")))

/* The real function, in the static variable `real`. */
#define REAL(name)                 \
    static __typeof__(name) *real; \
    if (!real)                     \
        *(void **)&real = dlsym(RTLD_NEXT, #name);

/* Counts a call. Returns true, and sets errno, if this call must fail. */
#define fails(name, error) fails_in(name, error, __builtin_return_address(0))

static bool is_active;
static unsigned long fails_at;
static atomic_ulong calls;
static const char *report;
static _Thread_local bool is_paused; /* the calls of this thread are not counted */

/* dlsym() itself allocates, before the real functions are known. */
static _Alignas(16) uint8_t early[8192];
static size_t early_used;

static void *alloc_early(size_t size)
{
    void *at = early + early_used;
    early_used += (size + 15) & ~(size_t)15;
    if (early_used > sizeof early)
        abort();
    return at;
}

static bool is_early(const void *memory)
{
    return (const uint8_t *)memory >= early && (const uint8_t *)memory < early + sizeof early;
}

/* Uses system calls directly, because the shim would count calls of open() and write(). Returns
 * false if the file exists and `flags` has O_EXCL. */
static bool write_report(const char *text, int flags)
{
    const long fd =
        report ? syscall(SYS_openat, AT_FDCWD, report, O_CREAT | O_WRONLY | flags, 0600) : -1;
    if (fd < 0)
        return false;
    syscall(SYS_write, fd, text, strlen(text));
    syscall(SYS_close, fd);
    return true;
}

/* Writes a text such as "malloc in libuv.so.1". Returns false if another process has failed a call
 * before, such as the parent of this process. */
static bool report_failure(const char *name, const void *caller)
{
    char text[128];
    Dl_info library = {.dli_fname = ""};
    dladdr(caller, &library);
    const char *slash = strrchr(library.dli_fname, '/');
    snprintf(text, sizeof text, "%s in %s", name, slash ? slash + 1 : library.dli_fname);
    return write_report(text, O_EXCL);
}

/* ---- Chains of callers ---- */

enum { CHAIN = 10, CHAINS = 1 << 16 };

static uint64_t chains[CHAINS]; /* a hash of the callers of each call */

static void note_chain(const char *name, unsigned long call)
{
    void *callers[CHAIN];
    uint64_t hash = (uintptr_t)name;
    if (call >= CHAINS)
        return;
    is_paused = true;
    const int depth = backtrace(callers, CHAIN);
    is_paused = false;
    for (int i = 0; i < depth; i++)
        hash = (hash ^ (uintptr_t)callers[i]) * UINT64_C(0x9e3779b97f4a7c15);
    chains[call] = hash | 1;
}

static bool is_first_of_chain(unsigned long call)
{
    for (unsigned long before = 0; before < call; before++)
        if (chains[before] == chains[call])
            return false;
    return chains[call] != 0;
}

/* ---- The decision of one call ---- */

static bool fails_in(const char *name, int error, const void *caller)
{
    if (!is_active || is_paused)
        return false;
    const unsigned long call = atomic_fetch_add(&calls, 1) + 1;
    if (fails_at == 0)
        note_chain(name, call);
    if (call != fails_at)
        return false;
    is_active = false;
    if (!report_failure(name, caller))
        return false;
    errno = error;
    return true;
}

static const char calls_variable[] = "SHUF_FAULT_CALLS";

/* The environment variable with the number of calls, for a program that executes itself again. */
static void pass_on_calls(void)
{
    char text[32];
    snprintf(text, sizeof text, "%lu", atomic_load(&calls));
    is_paused = true;
    setenv(calls_variable, text, 1);
    is_paused = false;
}

/* ---- Memory ---- */

static bool is_resolving;
static void *(*real_malloc)(size_t);
static void *(*real_calloc)(size_t, size_t);
static void *(*real_realloc)(void *, size_t);
static void (*real_free)(void *);

static void resolve(void)
{
    if (real_free || is_resolving)
        return;
    is_resolving = true;
    *(void **)&real_malloc = dlsym(RTLD_NEXT, "malloc");
    *(void **)&real_calloc = dlsym(RTLD_NEXT, "calloc");
    *(void **)&real_realloc = dlsym(RTLD_NEXT, "realloc");
    *(void **)&real_free = dlsym(RTLD_NEXT, "free");
    is_resolving = false;
}

EXPORT void *malloc(size_t size)
{
    resolve();
    if (!real_malloc)
        return alloc_early(size);
    return fails("malloc", ENOMEM) ? NULL : real_malloc(size);
}

EXPORT void *calloc(size_t count, size_t size)
{
    resolve();
    if (!real_calloc)
        return alloc_early(count * size); /* zeros */
    return fails("calloc", ENOMEM) ? NULL : real_calloc(count, size);
}

EXPORT void *realloc(void *memory, size_t size)
{
    resolve();
    if (is_early(memory)) {
        void *copy = real_malloc(size);
        if (copy)
            memcpy(copy, memory, size < 512 ? size : 512);
        return copy;
    }
    return fails("realloc", ENOMEM) ? NULL : real_realloc(memory, size);
}

EXPORT void free(void *memory)
{
    resolve();
    if (memory && !is_early(memory) && real_free)
        real_free(memory);
}

EXPORT void *reallocarray(void *memory, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(memory, bytes);
}

/* ---- The functions of the table ---- */

int __open_2(const char *path, int flags);

/* CALL(type, name, parameters, arguments, error, failure): the call sets errno to `error` and
 * returns `failure`. */
#define CALL(type, name, parameters, arguments, error, failure) \
    EXPORT type name parameters                                 \
    {                                                           \
        REAL(name)                                              \
        return fails(#name, error) ? failure : real arguments;  \
    }
/* Memory */
CALL(void *, mmap, (void *at, size_t size, int protection, int flags, int fd, off_t offset),
     (at, size, protection, flags, fd, offset), ENOMEM, MAP_FAILED)
CALL(int, madvise, (void *at, size_t size, int advice), (at, size, advice), ENOMEM, -1)
CALL(int, mlock, (const void *at, size_t size), (at, size), ENOMEM, -1)
CALL(int, posix_memalign, (void **memory, size_t alignment, size_t size), (memory, alignment, size),
     ENOMEM, ENOMEM)
CALL(int, memfd_create, (const char *name, unsigned flags), (name, flags), EMFILE, -1)
CALL(int, getentropy, (void *out, size_t size), (out, size), EIO, -1)
CALL(ssize_t, getrandom, (void *out, size_t size, unsigned flags), (out, size, flags), ENOSYS, -1)

/* Files */
CALL(int, __open_2, (const char *path, int flags), (path, flags), EMFILE, -1)
CALL(int, fstat, (int fd, struct stat *status), (fd, status), EIO, -1)
CALL(int, stat, (const char *path, struct stat *status), (path, status), EACCES, -1)
CALL(int, lstat, (const char *path, struct stat *status), (path, status), EACCES, -1)
CALL(int, statx, (int at, const char *path, int flags, unsigned mask, struct statx *found),
     (at, path, flags, mask, found), EACCES, -1)
CALL(int, fstatfs, (int fd, struct statfs *status), (fd, status), EIO, -1)
CALL(int, fstatvfs, (int fd, struct statvfs *status), (fd, status), EIO, -1)
CALL(int, access, (const char *path, int mode), (path, mode), EACCES, -1)
CALL(int, faccessat, (int at, const char *path, int mode, int flags), (at, path, mode, flags),
     EACCES, -1)
CALL(ssize_t, readlink, (const char *path, char *out, size_t size), (path, out, size), EACCES, -1)
CALL(char *, getcwd, (char *out, size_t size), (out, size), ENOENT, NULL)
CALL(ssize_t, pread, (int fd, void *out, size_t size, off_t offset), (fd, out, size, offset), EIO,
     -1)
CALL(ssize_t, pwrite, (int fd, const void *bytes, size_t size, off_t offset),
     (fd, bytes, size, offset), ENOSPC, -1)
CALL(int, ftruncate, (int fd, off_t size), (fd, size), ENOSPC, -1)
CALL(int, fallocate, (int fd, int mode, off_t offset, off_t size), (fd, mode, offset, size), ENOSPC,
     -1)
CALL(int, fsync, (int fd), (fd), EIO, -1)
CALL(int, fchmod, (int fd, mode_t mode), (fd, mode), EPERM, -1)
CALL(int, chmod, (const char *path, mode_t mode), (path, mode), EPERM, -1)
CALL(int, chown, (const char *path, uid_t user, gid_t group), (path, user, group), EPERM, -1)
CALL(int, fchown, (int fd, uid_t user, gid_t group), (fd, user, group), EPERM, -1)
CALL(int, fchownat, (int at, const char *path, uid_t user, gid_t group, int flags),
     (at, path, user, group, flags), EPERM, -1)
CALL(int, flock, (int fd, int operation), (fd, operation), ENOLCK, -1)
CALL(int, mkdir, (const char *path, mode_t mode), (path, mode), EACCES, -1)
CALL(int, unlink, (const char *path), (path), EACCES, -1)
CALL(int, rename, (const char *from, const char *to), (from, to), EACCES, -1)
CALL(int, linkat, (int from, const char *old, int to, const char *new, int flags),
     (from, old, to, new, flags), EACCES, -1)
CALL(int, mkostemp, (char *name, int flags), (name, flags), EMFILE, -1)

/* Directories */
CALL(DIR *, opendir, (const char *path), (path), EMFILE, NULL)
CALL(struct dirent *, readdir, (DIR * directory), (directory), EIO, NULL)
CALL(int, scandir,
     (const char *path, struct dirent ***list, int (*is_wanted)(const struct dirent *),
      int (*compare)(const struct dirent **, const struct dirent **)),
     (path, list, is_wanted, compare), ENOMEM, -1)

/* Streams */
CALL(FILE *, fopen, (const char *path, const char *mode), (path, mode), EMFILE, NULL)
CALL(FILE *, fdopen, (int fd, const char *mode), (fd, mode), ENOMEM, NULL)
CALL(FILE *, open_memstream, (char **text, size_t *size), (text, size), ENOMEM, NULL)
CALL(FILE *, popen, (const char *command, const char *mode), (command, mode), EMFILE, NULL)

/* Sockets */
CALL(int, socket, (int family, int type, int protocol), (family, type, protocol), EMFILE, -1)
CALL(int, socketpair, (int family, int type, int protocol, int ends[2]),
     (family, type, protocol, ends), EMFILE, -1)
CALL(int, connect, (int fd, const struct sockaddr *address, socklen_t length),
     (fd, address, length), ECONNREFUSED, -1)
CALL(int, bind, (int fd, const struct sockaddr *address, socklen_t length), (fd, address, length),
     EACCES, -1)
CALL(int, listen, (int fd, int backlog), (fd, backlog), EADDRINUSE, -1)
CALL(int, accept4, (int fd, struct sockaddr *address, socklen_t *length, int flags),
     (fd, address, length, flags), EMFILE, -1)
CALL(ssize_t, recv, (int fd, void *out, size_t size, int flags), (fd, out, size, flags), ECONNRESET,
     -1)
CALL(ssize_t, recvmsg, (int fd, struct msghdr *message, int flags), (fd, message, flags),
     ECONNRESET, -1)
CALL(ssize_t, send, (int fd, const void *bytes, size_t size, int flags), (fd, bytes, size, flags),
     ENOBUFS, -1)
CALL(ssize_t, sendto,
     (int fd, const void *bytes, size_t size, int flags, const struct sockaddr *address,
      socklen_t length),
     (fd, bytes, size, flags, address, length), ENOBUFS, -1)
CALL(ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags), (fd, message, flags),
     ENOBUFS, -1)
CALL(int, setsockopt, (int fd, int level, int name, const void *value, socklen_t size),
     (fd, level, name, value, size), ENOBUFS, -1)
CALL(int, getsockopt, (int fd, int level, int name, void *value, socklen_t *size),
     (fd, level, name, value, size), ENOBUFS, -1)
CALL(int, shutdown, (int fd, int how), (fd, how), ENOTCONN, -1)

/* The loop, processes and threads */
CALL(int, epoll_create1, (int flags), (flags), EMFILE, -1)
CALL(int, epoll_ctl, (int epoll, int operation, int fd, struct epoll_event *event),
     (epoll, operation, fd, event), ENOSPC, -1)
CALL(int, eventfd, (unsigned value, int flags), (value, flags), EMFILE, -1)
CALL(int, pipe2, (int ends[2], int flags), (ends, flags), EMFILE, -1)
CALL(int, inotify_init1, (int flags), (flags), EMFILE, -1)
CALL(int, inotify_add_watch, (int fd, const char *path, uint32_t mask), (fd, path, mask), ENOSPC,
     -1)
CALL(int, timer_create, (clockid_t clock, struct sigevent *event, timer_t *timer),
     (clock, event, timer), EAGAIN, -1)
CALL(int, poll, (struct pollfd * fds, nfds_t count, int timeout), (fds, count, timeout), ENOMEM, -1)
CALL(int, setrlimit, (__rlimit_resource_t resource, const struct rlimit *limit), (resource, limit),
     EPERM, -1)
CALL(int, sched_getaffinity, (pid_t process, size_t size, cpu_set_t *set), (process, size, set),
     EPERM, -1)
CALL(pid_t, fork, (void), (), EAGAIN, -1)
CALL(int, system, (const char *command), (command), EAGAIN, -1)
CALL(int, pthread_create,
     (pthread_t * thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument),
     (thread, attributes, start, argument), EAGAIN, EAGAIN)
#undef CALL

/* ---- Files ---- */

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

/* ---- Streams ---- */

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
    if (is_repeated || !fails_in(name, EIO, caller))
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

/* ---- Names ---- */

/* The functions of glibc crash if they get no memory, so only the whole call fails. */
#define NAME_CALL(type, name, parameters, arguments, failure) \
    EXPORT type name parameters                               \
    {                                                         \
        REAL(name)                                            \
        if (fails(#name, EMFILE))                             \
            return failure;                                   \
        is_paused = true;                                     \
        type found = real arguments;                          \
        is_paused = false;                                    \
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
    is_paused = true;
    const int error = real(thread, attributes);
    is_paused = false;
    return error;
}

/* ---- Processes ---- */

/* The program that is executed continues to count. */
EXPORT int execv(const char *path, char *const arguments[])
{
    REAL(execv)
    if (fails("execv", EACCES))
        return -1;
    pass_on_calls();
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

/* ---- The count ---- */

static unsigned long number_of(const char *name)
{
    const char *text = getenv(name);
    return text ? strtoul(text, NULL, 10) : 0;
}

static void begin(void)
{
    const char *program = getenv("SHUF_FAULT_PROGRAM");
    if (!program || strcmp(program, program_invocation_short_name) != 0)
        return;
    report = getenv("SHUF_FAULT_REPORT");
    fails_at = number_of("SHUF_FAULT_AT");
    atomic_store(&calls, number_of(calls_variable));
    unsetenv(calls_variable);
    is_active = true;
}

typedef int start_function(int, char **, char **);
static start_function *real_main;

static int counted_main(int argc, char **argv, char **environment)
{
    begin();
    return real_main(argc, argv, environment);
}

int __libc_start_main(start_function *, int, char **, void (*)(void), void (*)(void),
                      void (*)(void), void *);

/* Starts to count at main(). Before main(), constructors of libraries run, and the one of the CUDA
 * runtime crashes if it gets no memory. */
EXPORT int __libc_start_main(start_function *program, int argc, char **argv, void (*init)(void),
                             void (*fini)(void), void (*rtld_fini)(void), void *stack_end)
{
    REAL(__libc_start_main)
    real_main = program;
    return real(counted_main, argc, argv, init, fini, rtld_fini, stack_end);
}

/* Writes the number of calls and the first call of each chain. */
static void write_count(void)
{
    static char text[8 * CHAINS];
    const unsigned long count = atomic_load(&calls);
    int length = snprintf(text, sizeof text, "%lu", count);
    for (unsigned long call = 1; call <= count && call < CHAINS; call++)
        if (is_first_of_chain(call))
            length += snprintf(text + length, sizeof text - (size_t)length, " %lu", call);
    write_report(text, O_TRUNC);
}

__attribute__((destructor)) static void end(void)
{
    const bool counts = is_active && fails_at == 0;
    is_active = false;
    if (counts)
        write_count();
}
