/* SPDX-License-Identifier: MIT
 *
 * See kept_file.h.
 */
#include "host/kept_file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

struct kept_file {
    LIST_ENTRY(kept_file) link;
    int fd;
    char path[];
};

static LIST_HEAD(, kept_file) kept = LIST_HEAD_INITIALIZER(kept);
static unsigned kept_count;
static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool keeps;

static struct kept_file *find(const char *path)
{
    struct kept_file *file;
    LIST_FOREACH (file, &kept, link)
        if (strcmp(file->path, path) == 0)
            break;
    return file;
}

static struct kept_file *keep(const char *path)
{
    const size_t size = strlen(path) + 1;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct kept_file *file = fd >= 0 ? malloc(sizeof *file + size) : NULL;
    if (file) {
        file->fd = fd;
        memcpy(file->path, path, size);
        LIST_INSERT_HEAD(&kept, file, link);
        kept_count++;
    } else if (fd >= 0) {
        close(fd);
    }
    return file;
}

static void forget(struct kept_file *file)
{
    LIST_REMOVE(file, link);
    kept_count--;
    close(file->fd);
    free(file);
}

static bool read_all(int fd, char *text, size_t size)
{
    size_t used = 0;
    ssize_t got;
    while ((got = pread(fd, text + used, size - 1 - used, (off_t)used)) > 0)
        used += (size_t)got;
    text[used] = '\0';
    return got == 0;
}

static bool read_once(const char *path, char *text, size_t size)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    const bool is_read = read_all(fd, text, size);
    const int cause = errno;
    close(fd);
    errno = cause;
    return is_read;
}

/* A group that is removed and made again has new files. The old ones then fail with ENODEV. */
static bool read_kept(const char *path, char *text, size_t size)
{
    struct kept_file *file = find(path);
    if (file && read_all(file->fd, text, size))
        return true;
    if (file)
        forget(file);
    if (kept_count == SHUF__KEPT_FILES)
        return read_once(path, text, size);
    return (file = keep(path)) != NULL && read_all(file->fd, text, size);
}

void shuf__kept_files_begin(void)
{
    atomic_store(&keeps, true);
}

bool shuf__kept_file_read(const char *path, char *text, size_t size)
{
    if (!atomic_load(&keeps))
        return read_once(path, text, size);
    pthread_mutex_lock(&kept_lock);
    const bool is_read = read_kept(path, text, size);
    pthread_mutex_unlock(&kept_lock);
    return is_read;
}
