/* SPDX-License-Identifier: MIT
 *
 * See output.h.
 */
#include "output.h"

#include "end_by_signal.h"
#include "exit.h"
#include "units.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sysexits.h>
#include <unistd.h>

/* ---- The path ---- */

/* Parses a whole number; -1 if `text` is not a number. */
static int read_descriptor(const char *text)
{
    char *end;
    if (!isdigit((unsigned char)*text))
        return -1;
    errno = 0;
    long number = strtol(text, &end, 10);
    return *end == '\0' && errno == 0 && number <= INT_MAX ? (int)number : -1;
}

int shuf__output_path_descriptor(const char *path)
{
    static const char *const directories[] = {"/dev/fd/", "/proc/self/fd/"};
    if (strcmp(path, "-") == 0 || strcmp(path, "/dev/stdout") == 0)
        return STDOUT_FILENO;
    if (strcmp(path, "/dev/stderr") == 0)
        return STDERR_FILENO;
    for (size_t i = 0; i < sizeof directories / sizeof *directories; i++)
        if (strncmp(path, directories[i], strlen(directories[i])) == 0)
            return read_descriptor(path + strlen(directories[i]));
    return -1;
}

bool shuf__output_path_is_terminal(const char *path)
{
    struct stat status;
    int descriptor = shuf__output_path_descriptor(path);
    if (descriptor >= 0)
        return isatty(descriptor);
    if (stat(path, &status) != 0 || !S_ISCHR(status.st_mode))
        return false;
    int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0)
        return false;
    bool terminal = isatty(fd);
    close(fd);
    return terminal;
}

bool shuf__output_path_is_direct(const char *path)
{
    struct stat status;
    return shuf__output_path_descriptor(path) >= 0 ||
           (stat(path, &status) == 0 && !S_ISREG(status.st_mode));
}

/* Duplicates an inherited descriptor to one above 2. Returns -1 with errno; EBADF for a descriptor
 * that this process opened itself: shufctl opens with the flag FD_CLOEXEC, and inherited
 * descriptors do not have this flag. */
static int duplicate_descriptor(int descriptor)
{
    int flags = fcntl(descriptor, F_GETFD);
    if (flags < 0 || flags & FD_CLOEXEC) {
        errno = EBADF;
        return -1;
    }
    return fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
}

/* ---- Symbolic links ---- */

/* As realpath(3), but for output: the file need not exist, and links that another user may have
 * made as a trap are refused. */

/* errno: the path leads through a symbolic link that another user owns, in a directory where
 * everybody may create files. */
#define FOREIGN_LINK EXDEV

enum { LINKS = 40 }; /* as the kernel allows */

struct walk {
    char resolved[PATH_MAX]; /* without links; "" is the root directory */
    char rest[2 * PATH_MAX]; /* still to be resolved */
    int links;
};

static bool fail(int error)
{
    errno = error;
    return false;
}

/* Refuses a link of another user in a directory where everybody may create files, such as /tmp: the
 * link may be there to redirect the output. The kernel has the same rule for
 * fs.protected_symlinks; see proc(5). */
static bool may_follow(const char *directory, const struct stat *link)
{
    struct stat parent;
    if (lstat(*directory ? directory : "/", &parent))
        return false;
    const mode_t shared = S_ISVTX | S_IWOTH;
    if ((parent.st_mode & shared) != shared || link->st_uid == geteuid() ||
        link->st_uid == parent.st_uid)
        return true;
    return fail(FOREIGN_LINK);
}

static bool set_rest(struct walk *walk, const char *text)
{
    if (strlen(text) >= sizeof walk->rest)
        return fail(ENAMETOOLONG);
    memmove(walk->rest, text, strlen(text) + 1);
    if (walk->rest[0] == '/')
        walk->resolved[0] = '\0';
    return true;
}

static bool follow_link(struct walk *walk, const char *path, const struct stat *link)
{
    char target[PATH_MAX], text[sizeof walk->rest];
    if (++walk->links > LINKS)
        return fail(ELOOP);
    if (!may_follow(walk->resolved, link))
        return false;
    const ssize_t length = readlink(path, target, sizeof target);
    if (length < 0)
        return false;
    const int bytes = snprintf(text, sizeof text, "%.*s%s", (int)length, target, walk->rest);
    return bytes < (int)sizeof text ? set_rest(walk, text) : fail(ENAMETOOLONG);
}

static void drop_last(struct walk *walk)
{
    char *slash = strrchr(walk->resolved, '/');
    if (slash)
        *slash = '\0';
}

/* The next component of the rest, which may be missing if it is the last. */
static bool enter(struct walk *walk, const char *name)
{
    struct stat status;
    char path[PATH_MAX];
    const bool last = *walk->rest == '\0';
    if (snprintf(path, sizeof path, "%s/%s", walk->resolved, name) >= (int)sizeof path)
        return fail(ENAMETOOLONG);
    const bool exists = lstat(path, &status) == 0;
    if (!exists && !(errno == ENOENT && last))
        return false;
    if (exists && S_ISLNK(status.st_mode))
        return follow_link(walk, path, &status);
    if (exists && !S_ISDIR(status.st_mode) && !last)
        return fail(ENOTDIR);
    strcpy(walk->resolved, path);
    return true;
}

static bool step(struct walk *walk)
{
    char name[PATH_MAX];
    const size_t skip = strspn(walk->rest, "/"), length = strcspn(walk->rest + skip, "/");
    if (length >= sizeof name)
        return fail(ENAMETOOLONG);
    snprintf(name, sizeof name, "%.*s", (int)length, walk->rest + skip);
    memmove(walk->rest, walk->rest + skip + length, strlen(walk->rest + skip + length) + 1);
    if (strcmp(name, "..") == 0)
        drop_last(walk);
    else if (*name && strcmp(name, ".") != 0)
        return enter(walk, name);
    return true;
}

/* Resolves all symbolic links. The last component may be missing. The caller frees the result.
 * Returns NULL with errno on failure. */
static char *resolve_path(const char *path)
{
    struct walk walk = {.links = 0};
    if (!*path) {
        errno = ENOENT;
        return NULL;
    }
    if (path[0] != '/' && !getcwd(walk.resolved, sizeof walk.resolved))
        return NULL;
    if (!set_rest(&walk, path))
        return NULL;
    if (strcmp(walk.resolved, "/") == 0)
        walk.resolved[0] = '\0';
    while (*walk.rest)
        if (!step(&walk))
            return NULL;
    return strdup(*walk.resolved ? walk.resolved : "/");
}

/* ---- The file ---- */

enum {
    NAMES_MAX = 100, /* attempts to find a free name */
    SELF_MAX = 32,
};

/* The name that a signal must remove; "" when there is none. It changes only while the signals are
 * blocked. */
static char temporary[PATH_MAX];

void shuf__output_remove_temporary(void)
{
    if (*temporary)
        unlink(temporary);
}

static const char *self_path(char text[SELF_MAX], int fd)
{
    snprintf(text, SELF_MAX, "/proc/self/fd/%d", fd);
    return text;
}

static mode_t current_umask(void)
{
    mode_t mask = umask(0);
    umask(mask);
    return mask;
}

static int cannot_create(const char *name, int cause)
{
    return shuf__fail_with(cause == EACCES || cause == EPERM ? EX_NOPERM : EX_CANTCREAT,
                           "--out %s: cannot create: %s", name, shuf__cause_text(cause));
}

/* ".NAME.123456" in the target's directory, because a rename cannot cross file systems. */
static bool name_temporary(const char *target)
{
    unsigned number;
    const char *slash = strrchr(target, '/');
    int directory = slash ? (int)(slash + 1 - target) : 0;
    if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
        number = (unsigned)getpid();
    int length = snprintf(temporary, sizeof temporary, "%.*s.%.200s.%06x", directory, target,
                          target + directory, number & 0xffffff);
    return length > 0 && (size_t)length < sizeof temporary;
}

static bool create_named(struct shuf__output *output)
{
    output->fd = open(temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    return output->fd >= 0;
}

static bool link_unnamed(struct shuf__output *output)
{
    char self[SELF_MAX];
    return linkat(AT_FDCWD, self_path(self, output->fd), AT_FDCWD, temporary, AT_SYMLINK_FOLLOW) ==
           0;
}

/* Calls `make` with new temporary names until one is free. Returns 0 or errno. */
static int with_new_name(struct shuf__output *output, bool (*make)(struct shuf__output *))
{
    sigset_t old;
    int cause = EEXIST;
    shuf__block_signals(&old);
    for (int tries = 0; cause == EEXIST && tries < NAMES_MAX; tries++)
        if (!name_temporary(output->path))
            cause = ENAMETOOLONG;
        else
            cause = make(output) ? 0 : errno;
    if (cause != 0)
        *temporary = '\0';
    shuf__unblock_signals(&old);
    return cause;
}

/* A file without a name leaves nothing behind, however this process ends. */
static bool create_unnamed(struct shuf__output *output)
{
    char self[SELF_MAX];
    const char *slash = strrchr(output->path, '/');
    char *directory =
        slash ? strndup(output->path, (size_t)(slash + 1 - output->path)) : strdup(".");
    int fd = directory ? open(directory, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600) : -1;
    free(directory);
    if (fd < 0)
        return false;
    if (access(self_path(self, fd), F_OK) != 0) { /* without /proc the file cannot be linked */
        close(fd);
        return false;
    }
    output->fd = fd;
    return true;
}

/* old: the target's state, or NULL if it does not exist. */
static int create_temporary(struct shuf__output *output, const struct stat *old)
{
    output->unnamed = create_unnamed(output);
    int cause = output->unnamed ? 0 : with_new_name(output, create_named);
    if (cause != 0)
        return cannot_create(output->name, cause);
    /* The file was created for its owner only, so it gets its mode here: that of the old file,
     * unless another user has made that file, perhaps for all to read. A failure does not matter:
     * fchmod() fails on file systems without modes. */
    const bool keeps = old && old->st_uid == geteuid();
    if (fchmod(output->fd, keeps ? old->st_mode & 0777 : 0666 & ~current_umask()) != 0 &&
        errno != EPERM && errno != EOPNOTSUPP)
        return cannot_create(output->name, errno);
    return EX_OK;
}

/* Replaces the target of a symbolic link, not the link. */
static int open_path(struct shuf__output *output, const char *path)
{
    struct stat old;
    if (!*path)
        return cannot_create("''", ENOENT);
    output->path = resolve_path(path);
    const int cause = errno;
    if (!output->path && cause == FOREIGN_LINK)
        return shuf__fail_with(
            EX_NOPERM,
            "--out %s: leads through a symbolic link of another user, in a directory "
            "that everybody may write to; give the path of the file itself",
            path);
    bool exists = stat(output->path ? output->path : path, &old) == 0;
    if (exists && S_ISDIR(old.st_mode))
        return cannot_create(path, EISDIR);
    if (exists && !S_ISREG(old.st_mode)) {
        free(output->path);
        output->path = NULL;
        /* With O_CREAT the kernel protects from FIFOs of others in /tmp, as in shells. */
        output->fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY, 0600);
        return output->fd < 0 ? cannot_create(path, errno) : EX_OK;
    }
    if (!output->path)
        return cannot_create(path, cause);
    shuf__before_signal(shuf__output_remove_temporary);
    return create_temporary(output, exists ? &old : NULL);
}

int shuf__output_open(struct shuf__output *output, const char *path, bool binary)
{
    int code = EX_OK, descriptor = shuf__output_path_descriptor(path);
    *output = (struct shuf__output){.fd = -1, .name = path};
    if (descriptor < 0)
        code = open_path(output, path);
    else if ((output->fd = duplicate_descriptor(descriptor)) < 0)
        code = cannot_create(path, errno);
    if (code == EX_OK && binary && isatty(output->fd))
        code = shuf__fail_with(EX_USAGE,
                               "--out %s: binary to a terminal; expected --format text, a file "
                               "or a pipe",
                               path);
    if (code != EX_OK)
        shuf__output_close(output);
    return code;
}

/* Bytes of the file and of the free space of its file system. UINT64_MAX: unknown, as with ramfs
 * and some file systems of FUSE, which report a size of 0. */
static uint64_t room_of(int fd)
{
    struct statvfs fs;
    struct stat file;
    if (fstatvfs(fd, &fs) != 0 || fstat(fd, &file) != 0 || fs.f_blocks == 0)
        return UINT64_MAX;
    return (uint64_t)fs.f_bavail * fs.f_frsize + (uint64_t)file.st_blocks * 512;
}

/* Prints the failure ENOSPC or EFBIG of a file whose size is known. */
static int no_room(const struct shuf__output *output, uint64_t bytes, uint64_t room_left, int cause)
{
    char needed[SHUF__UNITS_TEXT], room[SHUF__UNITS_TEXT];
    shuf__units_bytes(needed, bytes);
    if (cause == EFBIG || room_left == UINT64_MAX)
        return shuf__fail_with(EX_IOERR,
                               "--out %s: %s: it needs %s, more than the file system or ulimit -f "
                               "allows a file",
                               output->name, strerror(cause), needed);
    return shuf__fail_with(EX_IOERR, "--out %s: %s: it needs %s, and %s are free there",
                           output->name, strerror(cause), needed,
                           shuf__units_bytes(room, room_left));
}

/* There a reservation is no gain: each write would visit the pages for the second time. */
static bool is_in_tmpfs(int fd)
{
    struct statfs fs;
    return fstatfs(fd, &fs) == 0 && fs.f_type == TMPFS_MAGIC;
}

int shuf__output_reserve(struct shuf__output *output, uint64_t bytes)
{
    if (!output->path || bytes == 0)
        return EX_OK;
    /* Measures the free space before the attempt, because some file systems give the file all
     * remaining space before they fail. */
    const uint64_t left = room_of(output->fd);
    if (left < bytes) {
        output->cause = ENOSPC;
        return no_room(output, bytes, left, ENOSPC);
    }
    if (is_in_tmpfs(output->fd))
        return EX_OK;
    /* Not posix_fallocate(): if the file system cannot reserve space, it writes every block. */
    int result;
    do
        result = fallocate(output->fd, 0, 0, (off_t)bytes);
    while (result != 0 && errno == EINTR);
    if (result == 0 || errno == EOPNOTSUPP || errno == ENOSYS)
        return EX_OK;
    output->cause = errno;
    return errno == ENOSPC || errno == EFBIG ? no_room(output, bytes, left, errno)
                                             : shuf__output_failed(output);
}

bool shuf__write_all(int fd, const void *bytes, size_t size)
{
    const char *p = bytes;
    while (size > 0) {
        const ssize_t written = write(fd, p, size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return false;
        p += written;
        size -= (size_t)written;
    }
    return true;
}

bool shuf__output_write(struct shuf__output *output, const void *bytes, size_t size)
{
    const bool is_written = shuf__write_all(output->fd, bytes, size);
    if (!is_written)
        output->cause = errno;
    return is_written;
}

int shuf__output_write_at(const struct shuf__output *output, uint64_t offset, const void *bytes,
                          size_t size)
{
    const char *p = bytes;
    while (size > 0) {
        const ssize_t written = pwrite(output->fd, p, size, (off_t)offset);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return errno;
        p += written;
        offset += (uint64_t)written;
        size -= (size_t)written;
    }
    return 0;
}

int shuf__output_failed(const struct shuf__output *output)
{
    return shuf__fail_with(EX_IOERR, "--out %s: %s", output->name, shuf__cause_text(output->cause));
}

static int rename_temporary(struct shuf__output *output)
{
    sigset_t old;
    shuf__block_signals(&old);
    int cause = rename(temporary, output->path) == 0 ? 0 : errno;
    if (cause == 0)
        *temporary = '\0';
    shuf__unblock_signals(&old);
    return cause == 0 ? EX_OK : cannot_create(output->name, cause);
}

int shuf__output_commit(struct shuf__output *output)
{
    if (!output->path)
        return EX_OK;
    if (fsync(output->fd) != 0) {
        output->cause = errno;
        return shuf__output_failed(output);
    }
    int cause = output->unnamed ? with_new_name(output, link_unnamed) : 0;
    return cause == 0 ? rename_temporary(output) : cannot_create(output->name, cause);
}

void shuf__output_close(struct shuf__output *output)
{
    sigset_t old;
    shuf__block_signals(&old);
    if (*temporary)
        unlink(temporary);
    *temporary = '\0';
    shuf__unblock_signals(&old);
    if (output->fd >= 0)
        close(output->fd);
    free(output->path);
    *output = (struct shuf__output){.fd = -1};
}
