/* SPDX-License-Identifier: MIT
 *
 * See memfd.h. The kernel grants a file lease if no file description of open() exists. The
 * description of memfd_create() does not count, nor does the daemon's mapping of it. A client's
 * descriptor comes from open() in shuf__memfd_share(), so its description counts. The mappings that
 * the client makes keep this description alive after the client closes the descriptor.
 */
#include "host/memfd.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

static shuf_status fail(struct shuf__error *error, uint64_t bytes, const char *call)
{
    bool memory = errno == ENOMEM || errno == EFBIG || errno == ENOSPC;
    return shuf__fail(error, memory ? SHUF_NO_MEMORY : SHUF_IO,
                      "result of %" PRIu64 " bytes: %s: %s", bytes, call, strerror(errno));
}

/* Linux 6.3 and later can be configured to refuse memfds without MFD_NOEXEC_SEAL. Earlier kernels
 * refuse this unknown flag, so the second try omits it. */
static int create(void)
{
    int fd = memfd_create("shufd", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
    if (fd < 0 && errno == EINVAL)
        fd = memfd_create("shufd", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    return fd;
}

static int reopen(int fd, int access)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return open(path, access | O_CLOEXEC);
}

/* Locks the whole file, for as long as the mapping exists. Without this lock a process that has a
 * descriptor could set a million record locks on the file in a second. The kernel then searches all
 * of them at each close() of the file, and file leases wait for these searches. gVisor may lack
 * such locks. */
static bool lock(int fd)
{
    const struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return flock(fd, LOCK_EX | LOCK_NB) == 0 &&
           (fcntl(fd, F_OFD_SETLK, &whole) == 0 || errno == EINVAL);
}

/* Sets the seals and the mode. A client_writable block has mode 0600, because shuf__memfd_share()
 * opens it again for writing. */
static shuf_status seal(int fd, uint64_t bytes, bool writable, struct shuf__error *error)
{
    const int seals =
        F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL | (writable ? 0 : F_SEAL_FUTURE_WRITE);
    if (fcntl(fd, F_ADD_SEALS, seals))
        return fail(error, bytes, "F_ADD_SEALS");
    if (fchmod(fd, writable ? 0600 : 0400))
        return fail(error, bytes, "fchmod");
    return SHUF_OK;
}

static shuf_status fill(int fd, uint64_t bytes, bool writable, struct shuf__block *block,
                        struct shuf__error *error)
{
    if (bytes > INT64_MAX || ftruncate(fd, (off_t)bytes))
        return fail(error, bytes, "ftruncate");
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED)
        return fail(error, bytes, "mmap");
    if (bytes >= SHUF__BLOCK_UNIT)
        madvise(memory, bytes, MADV_HUGEPAGE); /* only a hint: fewer page faults */
    if (!lock(fd)) {
        fail(error, bytes, "lock");
        goto unmap;
    }
    if (seal(fd, bytes, writable, error))
        goto unmap;
    block->fd = reopen(fd, O_RDONLY);
    if (block->fd < 0) {
        fail(error, bytes, "/proc/self/fd");
        goto unmap;
    }
    block->memory = memory;
    block->host = memory;
    block->bytes = bytes;
    block->client_writable = writable;
    return SHUF_OK;
unmap:
    munmap(memory, bytes);
    return error->status;
}

static shuf_status alloc(uint64_t bytes, bool writable, struct shuf__block *block,
                         struct shuf__error *error)
{
    *block = (struct shuf__block){.kind = SHUF__MEMORY_MEMFD, .fd = -1};
    if (bytes == 0)
        return SHUF_OK;
    int fd = create();
    if (fd < 0)
        return fail(error, bytes, "memfd_create");
    shuf_status status = fill(fd, bytes, writable, block, error);
    close(fd);
    return status;
}

shuf_status shuf__memfd_alloc(uint64_t bytes, struct shuf__block *block, struct shuf__error *error)
{
    return alloc(bytes, false, block, error);
}

shuf_status shuf__memfd_alloc_writable(uint64_t bytes, struct shuf__block *block,
                                       struct shuf__error *error)
{
    return alloc(bytes, true, block, error);
}

void shuf__memfd_free(struct shuf__block *block)
{
    if (block->memory) {
        if (block->fd >= 0)
            close(block->fd);
        munmap(block->memory, block->bytes); /* ends the lock */
    }
    *block = (struct shuf__block){.fd = -1};
}

int shuf__memfd_share(const struct shuf__block *block)
{
    return reopen(block->fd, block->client_writable ? O_RDWR : O_RDONLY);
}

uint64_t shuf__memfd_committed(const struct shuf__block *block)
{
    struct stat status;
    if (block->fd < 0)
        return block->bytes;
    return fstat(block->fd, &status) ? 0 : (uint64_t)status.st_blocks * 512;
}

/* The daemon takes the kernel's file lease and gives it back at once. If a process opens the file
 * between these calls, its open() waits, and the kernel signals the daemon. The default signal is
 * SIGIO, which would end the daemon. So each call chooses SIGURG, which the daemon ignores. */
bool shuf__memfd_is_unmapped(const struct shuf__block *block)
{
    if (fcntl(block->fd, F_SETSIG, SIGURG) || fcntl(block->fd, F_SETLEASE, F_WRLCK))
        return false;
    fcntl(block->fd, F_SETLEASE, F_UNLCK);
    return true;
}

enum { FAULT = 256 };

static bool knows_mappings;
static struct shuf__error no_memfd;
static char lending_fault[FAULT];

static const char *advice_for(const char *cause)
{
    static const struct {
        const char *part, *advice;
    } advices[] = {
        {"/proc", "mount /proc"},
        {"ftruncate: File too large", "raise ulimit -f, or LimitFSIZE= of the unit"},
        {"Cannot allocate memory", "raise the limit of memory (ulimit -v), or free some"},
        {"Too many open files", "raise ulimit -n, or LimitNOFILE= of the unit"}};
    for (size_t i = 0; i < sizeof advices / sizeof *advices; i++)
        if (strstr(cause, advices[i].part))
            return advices[i].advice;
    return "allow this call in the sandbox (seccomp)";
}

/* Without the size of the result, which is that of the test. */
static void explain_no_memfd(void)
{
    const char *after = strstr(no_memfd.text, ": "), *cause = after ? after + 2 : no_memfd.text;
    snprintf(lending_fault, sizeof lending_fault, "%.160s; %s, then restart shufd", cause,
             advice_for(cause));
}

static void test_mappings(void)
{
    struct shuf__block block;
    if (alloc(1, false, &block, &no_memfd)) {
        explain_no_memfd();
        return;
    }
    const bool before = shuf__memfd_is_unmapped(&block);
    const int shared = shuf__memfd_share(&block);
    const bool meanwhile = shuf__memfd_is_unmapped(&block);
    if (shared >= 0)
        close(shared);
    knows_mappings = before && shared >= 0 && !meanwhile && shuf__memfd_is_unmapped(&block);
    if (!knows_mappings)
        snprintf(lending_fault, sizeof lending_fault,
                 "the kernel grants no file leases; sysctl fs.leases-enable=1, as root, then "
                 "restart shufd; a sandbox such as gVisor has none");
    shuf__memfd_free(&block);
}

bool shuf__memfd_knows_mappings(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, test_mappings);
    return knows_mappings;
}

const char *shuf__memfd_fault(void)
{
    shuf__memfd_knows_mappings();
    return no_memfd.text;
}

const char *shuf__memfd_lending_fault(void)
{
    shuf__memfd_knows_mappings();
    return lending_fault;
}
