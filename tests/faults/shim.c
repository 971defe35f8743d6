/* SPDX-License-Identifier: MIT
 *
 * A library for LD_PRELOAD. It counts those calls of a process that can fail, such as malloc(), and
 * makes one of them fail. Environment variables select the call:
 *
 *   SHUF_FAULT_PROGRAM  the program's name; the shim does nothing in others
 *   SHUF_FAULT_AT       the number of the call that fails, from 1 on; 0: none
 *   SHUF_FAULT_REPORT   a file for the name of the call that failed and the library that made it,
 *                       or at the end for the number of calls
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static bool is_active;
static unsigned long fails_at;
static atomic_ulong calls;
static const char *report;
static _Thread_local bool is_paused;

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

/* Uses system calls directly, because the shim would count calls of open() and write(). */
static void write_report(const char *text)
{
    const long fd =
        report ? syscall(SYS_openat, AT_FDCWD, report, O_CREAT | O_TRUNC | O_WRONLY, 0600) : -1;
    if (fd < 0)
        return;
    syscall(SYS_write, fd, text, strlen(text));
    syscall(SYS_close, fd);
}

/* Writes a text such as "malloc in libuv.so.1". */
static void report_failure(const char *name, const void *caller)
{
    char text[128];
    Dl_info library = {.dli_fname = ""};
    dladdr(caller, &library);
    const char *slash = strrchr(library.dli_fname, '/');
    snprintf(text, sizeof text, "%s in %s", name, slash ? slash + 1 : library.dli_fname);
    write_report(text);
}

static bool fails_in(const char *name, int error, const void *caller)
{
    if (!is_active || is_paused || atomic_fetch_add(&calls, 1) + 1 != fails_at)
        return false;
    is_active = false;
    report_failure(name, caller);
    errno = error;
    return true;
}

/* Counts a call. Returns true if this call must fail. */
#define fails(name, error) fails_in(name, error, __builtin_return_address(0))

#define REAL(name)                 \
    static __typeof__(name) *real; \
    if (!real)                     \
        *(void **)&real = dlsym(RTLD_NEXT, #name);

/* ---- Memory ---------------------------------------------------------------------- */

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

EXPORT int posix_memalign(void **memory, size_t alignment, size_t size)
{
    REAL(posix_memalign)
    return fails("posix_memalign", ENOMEM) ? ENOMEM : real(memory, alignment, size);
}

EXPORT void *mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    REAL(mmap)
    return fails("mmap", ENOMEM) ? MAP_FAILED : real(at, size, protection, flags, fd, offset);
}

EXPORT int memfd_create(const char *name, unsigned flags)
{
    REAL(memfd_create)
    return fails("memfd_create", EMFILE) ? -1 : real(name, flags);
}

EXPORT int ftruncate(int fd, off_t size)
{
    REAL(ftruncate)
    return fails("ftruncate", ENOSPC) ? -1 : real(fd, size);
}

/* ---- Files -------------------------------------------------------------------------- */

EXPORT int open(const char *path, int flags, ...)
{
    REAL(open)
    va_list arguments;
    va_start(arguments, flags);
    const mode_t mode = va_arg(arguments, mode_t);
    va_end(arguments);
    return fails("open", EMFILE) ? -1 : real(path, flags, mode);
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

/* Reads and writes of pipes and eventfds never fail here, because libuv relies on them. */
static bool can_fail(int fd)
{
    struct stat status;
    return syscall(SYS_fstat, fd, &status) == 0 &&
           (S_ISREG(status.st_mode) || S_ISSOCK(status.st_mode));
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

EXPORT FILE *fopen(const char *path, const char *mode)
{
    REAL(fopen)
    return fails("fopen", EMFILE) ? NULL : real(path, mode);
}

EXPORT int fstat(int fd, struct stat *status)
{
    REAL(fstat)
    return fails("fstat", EIO) ? -1 : real(fd, status);
}

EXPORT int fallocate(int fd, int mode, off_t offset, off_t size)
{
    REAL(fallocate)
    return fails("fallocate", ENOSPC) ? -1 : real(fd, mode, offset, size);
}

EXPORT int fsync(int fd)
{
    REAL(fsync)
    return fails("fsync", EIO) ? -1 : real(fd);
}

EXPORT int fchmod(int fd, mode_t mode)
{
    REAL(fchmod)
    return fails("fchmod", EPERM) ? -1 : real(fd, mode);
}

EXPORT int flock(int fd, int operation)
{
    REAL(flock)
    return fails("flock", ENOLCK) ? -1 : real(fd, operation);
}

EXPORT int rename(const char *from, const char *to)
{
    REAL(rename)
    return fails("rename", EACCES) ? -1 : real(from, to);
}

EXPORT int mkostemp(char *name, int flags)
{
    REAL(mkostemp)
    return fails("mkostemp", EMFILE) ? -1 : real(name, flags);
}

EXPORT int linkat(int from, const char *old, int to, const char *new, int flags)
{
    REAL(linkat)
    return fails("linkat", EACCES) ? -1 : real(from, old, to, new, flags);
}

EXPORT ssize_t pread(int fd, void *out, size_t size, off_t offset)
{
    REAL(pread)
    return fails("pread", EIO) ? -1 : real(fd, out, size, offset);
}

/* ---- Sockets ------------------------------------------------------------------------ */

EXPORT int socket(int family, int type, int protocol)
{
    REAL(socket)
    return fails("socket", EMFILE) ? -1 : real(family, type, protocol);
}

EXPORT int connect(int fd, const struct sockaddr *address, socklen_t length)
{
    REAL(connect)
    return fails("connect", ECONNREFUSED) ? -1 : real(fd, address, length);
}

EXPORT int bind(int fd, const struct sockaddr *address, socklen_t length)
{
    REAL(bind)
    return fails("bind", EACCES) ? -1 : real(fd, address, length);
}

EXPORT int listen(int fd, int backlog)
{
    REAL(listen)
    return fails("listen", EADDRINUSE) ? -1 : real(fd, backlog);
}

EXPORT int accept4(int fd, struct sockaddr *address, socklen_t *length, int flags)
{
    REAL(accept4)
    return fails("accept4", EMFILE) ? -1 : real(fd, address, length, flags);
}

EXPORT ssize_t recv(int fd, void *out, size_t size, int flags)
{
    REAL(recv)
    return fails("recv", ECONNRESET) ? -1 : real(fd, out, size, flags);
}

EXPORT ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
    REAL(recvmsg)
    return fails("recvmsg", ECONNRESET) ? -1 : real(fd, message, flags);
}

EXPORT ssize_t send(int fd, const void *bytes, size_t size, int flags)
{
    REAL(send)
    return fails("send", ENOBUFS) ? -1 : real(fd, bytes, size, flags);
}

EXPORT ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    REAL(sendmsg)
    return fails("sendmsg", ENOBUFS) ? -1 : real(fd, message, flags);
}

EXPORT int setsockopt(int fd, int level, int name, const void *value, socklen_t size)
{
    REAL(setsockopt)
    return fails("setsockopt", ENOBUFS) ? -1 : real(fd, level, name, value, size);
}

/* ---- Names: the real functions of glibc crash if they get no memory ------------------ */

EXPORT struct passwd *getpwuid(uid_t uid)
{
    REAL(getpwuid)
    is_paused = true;
    struct passwd *entry = real(uid);
    is_paused = false;
    return entry;
}

EXPORT int getgrgid_r(gid_t gid, struct group *group, char *text, size_t size,
                      struct group **result)
{
    REAL(getgrgid_r)
    is_paused = true;
    const int error = real(gid, group, text, size, result);
    is_paused = false;
    return error;
}

EXPORT int getpwuid_r(uid_t uid, struct passwd *user, char *text, size_t size,
                      struct passwd **result)
{
    REAL(getpwuid_r)
    is_paused = true;
    const int error = real(uid, user, text, size, result);
    is_paused = false;
    return error;
}

/* AddressSanitizer calls this function in each new thread, and ends the process if it fails. */
EXPORT int pthread_getattr_np(pthread_t thread, pthread_attr_t *attributes)
{
    REAL(pthread_getattr_np)
    is_paused = true;
    const int error = real(thread, attributes);
    is_paused = false;
    return error;
}

/* ---- The loop and its threads ------------------------------------------------------- */

EXPORT int epoll_create1(int flags)
{
    REAL(epoll_create1)
    return fails("epoll_create1", EMFILE) ? -1 : real(flags);
}

EXPORT int epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event)
{
    REAL(epoll_ctl)
    return fails("epoll_ctl", ENOSPC) ? -1 : real(epoll, operation, fd, event);
}

EXPORT int eventfd(unsigned value, int flags)
{
    static int (*real)(unsigned, int);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "eventfd");
    return fails("eventfd", EMFILE) ? -1 : real(value, flags);
}

EXPORT int pipe2(int ends[2], int flags)
{
    REAL(pipe2)
    return fails("pipe2", EMFILE) ? -1 : real(ends, flags);
}

EXPORT int inotify_init1(int flags)
{
    static int (*real)(int);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "inotify_init1");
    return fails("inotify_init1", EMFILE) ? -1 : real(flags);
}

EXPORT int inotify_add_watch(int fd, const char *path, uint32_t mask)
{
    static int (*real)(int, const char *, uint32_t);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "inotify_add_watch");
    return fails("inotify_add_watch", ENOSPC) ? -1 : real(fd, path, mask);
}

/* glibc before 2.36 has no function pidfd_open(), so shufd uses syscall() for it. */
EXPORT long syscall(long number, ...)
{
    static long (*real)(long, ...);
    long argument[6];
    va_list arguments;
    va_start(arguments, number);
    for (int i = 0; i < 6; i++)
        argument[i] = va_arg(arguments, long);
    va_end(arguments);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "syscall");
    if (number == SYS_pidfd_open && fails("pidfd_open", EMFILE))
        return -1;
    return real(number, argument[0], argument[1], argument[2], argument[3], argument[4],
                argument[5]);
}

EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *argument)
{
    REAL(pthread_create)
    return fails("pthread_create", EAGAIN) ? EAGAIN : real(thread, attributes, start, argument);
}

/* ---- The count ---------------------------------------------------------------------- */

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

__attribute__((destructor)) static void end(void)
{
    char text[32];
    const bool counts = is_active && fails_at == 0;
    is_active = false;
    if (!counts)
        return;
    snprintf(text, sizeof text, "%lu", atomic_load(&calls));
    write_report(text);
}
