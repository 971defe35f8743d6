/* SPDX-License-Identifier: MIT
 *
 * See array.h.
 */
#include "array.h"

#include "error.h"
#include "exit.h"
#include "npy.h"
#include "output.h"
#include "progress.h"
#include "shuf.h"
#include "verb_options.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

/* Up to `size` bytes, fewer at the file's end; -1 with errno. */
static ssize_t read_at(int fd, uint64_t offset, size_t size, void *out)
{
    size_t done = 0;
    while (done < size) {
        ssize_t got = pread(fd, (char *)out + done, size - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        done += (size_t)got;
    }
    return (ssize_t)done;
}

static int cannot_read(const struct shuf__array *a, const char *why)
{
    return shuf__fail_with(EX_IOERR, "--in %s: cannot read: %s", a->name, why);
}

static int malformed(const struct shuf__array *a, const char *why)
{
    return shuf__fail_with(EX_DATAERR, "--in %s: %s", a->name, why);
}

static int set_npy_size(struct shuf__array *a, struct shuf__npy *npy, uint64_t size, uint64_t given)
{
    char why[SHUF__NPY_WHY];
    if (npy->header > size || npy->header > SHUF__NPY_DICT_MAX)
        return malformed(a, npy->header > size
                                ? "header: cut off; expected the whole file"
                                : "header: longer than 1 MiB; expected a shorter one");
    if (!(a->header = malloc(npy->header)))
        return shuf__fail_with(EX_OSERR, "--in %s: out of memory", a->name);
    a->header_size = npy->header;
    if (read_at(a->fd, 0, npy->header, a->header) != (ssize_t)npy->header)
        return cannot_read(a, "its header");
    if (!shuf__npy_read(a->header + npy->dict, npy->header - npy->dict, npy, why))
        return malformed(a, why);
    if (size - npy->header != npy->bytes)
        return shuf__fail_with(
            EX_DATAERR,
            "--in %s: %" PRIu64 " byte%s after its header, expected %" PRIu64 " for its shape",
            a->name, size - npy->header, shuf__plural(size - npy->header), npy->bytes);
    if (given != 0 && given != npy->record)
        return shuf__fail_with(EX_USAGE,
                               "--record %" PRIu64 ": the records of %s have %" PRIu64
                               " bytes; expected that number, or no --record",
                               given, a->name, npy->record);
    a->records = npy->records;
    a->record = npy->record;
    a->bytes = npy->bytes;
    return EX_OK;
}

static int set_raw_size(struct shuf__array *a, uint64_t size, uint64_t given)
{
    if (given == 0 && strcasecmp(shuf__suffix(a->name), ".npy") == 0)
        return malformed(a, "no header of an .npy file; expected a file that numpy.save writes, or "
                            "--record for raw bytes");
    if (given == 0)
        return shuf__fail_with(EX_USAGE,
                               "--record: missing; expected it, as in --record 4096, since %s is "
                               "no .npy with the size in its header; lines of text have no common "
                               "size: order them by the numbers that shufctl permute gives",
                               a->name);
    if (size % given != 0)
        return shuf__fail_with(
            EX_DATAERR, "--in %s: %" PRIu64 " byte%s, expected a multiple of --record %" PRIu64,
            a->name, size, shuf__plural(size), given);
    a->record = given;
    a->records = size / given;
    a->bytes = size;
    return size > 0 ? EX_OK : malformed(a, "no records in it, expected at least one");
}

/* True for an .npz or another zip archive. A shuffle of its bytes as raw records would destroy the
 * archive. */
static bool is_archive(const uint8_t *front, size_t size)
{
    return size >= 4 && memcmp(front, "PK\3\4", 4) == 0;
}

/* ---- Pipes ---- */

/* True for a pipe, a socket, and standard input that another process has partly read. */
static bool is_sequential(int fd, const struct stat *status)
{
    return S_ISFIFO(status->st_mode) || S_ISSOCK(status->st_mode) ||
           (S_ISREG(status->st_mode) && lseek(fd, 0, SEEK_CUR) > 0);
}

/* Returns errno or 0. After a failure, *reading is true if reading failed, false if writing did. */
static int copy_all(int from, int to, bool *reading)
{
    static char buffer[1 << 18];
    for (;;) {
        ssize_t got = read(from, buffer, sizeof buffer);
        *reading = got <= 0;
        if (got == 0)
            return 0;
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 || !shuf__write_all(to, buffer, (size_t)got))
            return errno;
        shuf__progress_add((uint64_t)got);
    }
}

/* A pipe must be copied: its size is known only at its end, and a shuffle may start with any
 * record. */
static int copy_to_file(struct shuf__array *a)
{
    bool reading;
    int copy = shuf__temporary_file();
    if (copy < 0)
        return shuf__fail_with(EX_IOERR, "--in %s: no temporary file in %s: %s; set TMPDIR",
                               a->name, shuf__temporary_directory(), strerror(errno));
    shuf__progress_phase("reading", 0);
    const int cause = copy_all(a->fd, copy, &reading);
    close(a->fd);
    a->fd = copy;
    shuf__progress_end();
    if (cause != 0 && reading)
        return cannot_read(a, strerror(cause));
    if (cause != 0)
        return shuf__fail_with(EX_IOERR, "--in %s: its temporary copy in %s: %s; set TMPDIR",
                               a->name, shuf__temporary_directory(), strerror(cause));
    return EX_OK;
}

/* ---- Files ---- */

static int read_size(struct shuf__array *a, uint64_t given)
{
    struct stat status;
    struct shuf__npy npy;
    char why[SHUF__NPY_WHY];
    uint8_t front[SHUF__NPY_FRONT];
    if (fstat(a->fd, &status) != 0)
        return cannot_read(a, strerror(errno));
    if (is_sequential(a->fd, &status)) {
        int code = copy_to_file(a);
        if (code != EX_OK)
            return code;
        if (fstat(a->fd, &status) != 0)
            return cannot_read(a, strerror(errno));
    }
    if (!S_ISREG(status.st_mode))
        return shuf__fail_with(EX_NOINPUT, "--in %s: expected a regular file or a pipe", a->name);
    ssize_t got = read_at(a->fd, 0, sizeof front, front);
    if (got < 0)
        return cannot_read(a, strerror(errno));
    if (is_archive(front, (size_t)got) && given == 0)
        return malformed(a, "a zip archive, such as an .npz of several arrays; expected one .npy: "
                            "numpy.save writes it");
    if (!shuf__npy_begins(front, (size_t)got, &npy, why))
        return set_raw_size(a, (uint64_t)status.st_size, given);
    return npy.header ? set_npy_size(a, &npy, (uint64_t)status.st_size, given) : malformed(a, why);
}

int shuf__array_open(struct shuf__array *array, const char *path, uint64_t record)
{
    *array = (struct shuf__array){.name = path};
    array->fd = strcmp(path, "-") == 0 ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)
                                       : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (array->fd < 0)
        return shuf__fail_with(errno == EACCES ? EX_NOPERM : EX_NOINPUT,
                               "--in %s: cannot open: %s%s", path, strerror(errno),
                               errno == ENXIO ? "; expected a regular file or a pipe" : "");
    int code = read_size(array, record);
    if (code == EX_OK)
        posix_fadvise(array->fd, 0, 0, POSIX_FADV_SEQUENTIAL); /* a hint */
    else
        shuf__array_close(array);
    return code;
}

int shuf__array_read(const struct shuf__array *array, uint64_t offset, size_t size, void *out)
{
    ssize_t got = read_at(array->fd, array->header_size + offset, size, out);
    if (got < 0)
        return cannot_read(array, strerror(errno));
    return (size_t)got == size ? EX_OK : cannot_read(array, "it was cut off meanwhile");
}

void shuf__array_close(struct shuf__array *array)
{
    close(array->fd);
    free(array->header);
    *array = (struct shuf__array){.fd = -1};
}

/* ---- Temporary files ---- */

const char *shuf__temporary_directory(void)
{
    const char *directory = getenv("TMPDIR");
    return directory && *directory ? directory : "/tmp";
}

/* For a file system without O_TMPFILE. */
static int open_named(const char *directory)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/shufctl-XXXXXX", directory) >= (int)sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    int fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        unlink(path);
    return fd;
}

int shuf__temporary_file(void)
{
    const char *directory = shuf__temporary_directory();
    int fd = open(directory, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
    return fd < 0 && errno != EACCES && errno != ENOENT ? open_named(directory) : fd;
}
