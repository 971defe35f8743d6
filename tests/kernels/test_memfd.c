/* SPDX-License-Identifier: MIT
 *
 * The contract of kernels/host/memfd.h for blocks that are memfds. A process that gets a descriptor
 * cannot change the block. The daemon notices every process that has the block open or mapped. The
 * backend of the command line makes the blocks.
 */
#include "host/memfd.h"
#include "support/cmocka_all.h"
#include "support/computation.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { UNIT = SHUF__BLOCK_UNIT };

/* ---- Sealed --------------------------------------------------------------- */

#define REFUSED(call, number)                                                          \
    do {                                                                               \
        errno = 0;                                                                     \
        if ((long)(call) != -1 || errno != (number)) {                                 \
            fprintf(stderr, "%s: %s, expected %s\n", #call, strerror(errno), #number); \
            return false;                                                              \
        }                                                                              \
    } while (0)

static int reopen(int fd, int flags)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return open(path, flags | O_CLOEXEC);
}

static void *map(int fd, int protection)
{
    return mmap(NULL, UNIT, protection, MAP_SHARED, fd, 0);
}

/* Checks a descriptor that was opened for reading. */
static bool is_read_only(int fd)
{
    char byte = 1;
    REFUSED(write(fd, &byte, 1), EBADF);
    REFUSED(ftruncate(fd, 0), EINVAL);
    REFUSED(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), EBADF);
    REFUSED(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), EPERM);
    REFUSED(map(fd, PROT_READ | PROT_WRITE), EACCES);
    void *view = map(fd, PROT_READ);
    if (view == MAP_FAILED)
        return false;
    REFUSED(mprotect(view, UNIT, PROT_READ | PROT_WRITE), EACCES);
    REFUSED(madvise(view, UNIT, MADV_REMOVE), EACCES);
    munmap(view, UNIT);
    return true;
}

/* The file's owner can open it for writing, but cannot change it. */
static bool owner_cannot_change_file(int fd)
{
    char byte = 1;
    if (fchmod(fd, 0600))
        return false;
    int writable = reopen(fd, O_RDWR);
    if (writable < 0)
        return false;
    REFUSED(pwrite(writable, &byte, 1, 0), EPERM);
    REFUSED(pwrite(writable, &byte, 1, UNIT), EPERM);
    REFUSED(ftruncate(writable, 0), EPERM);
    REFUSED(ftruncate(writable, 2 * UNIT), EPERM);
    REFUSED(fallocate(writable, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), EPERM);
    REFUSED(fallocate(writable, FALLOC_FL_ZERO_RANGE, 0, 4096), EOPNOTSUPP);
    REFUSED(fcntl(writable, F_ADD_SEALS, F_SEAL_WRITE), EPERM);
    REFUSED(map(writable, PROT_READ | PROT_WRITE), EPERM);
    void *view = map(writable, PROT_READ);
    if (view == MAP_FAILED)
        return false;
    REFUSED(mprotect(view, UNIT, PROT_READ | PROT_WRITE), EACCES);
    munmap(view, UNIT);
    REFUSED(reopen(fd, O_RDWR | O_TRUNC), EPERM);
    close(writable);
    return fchmod(fd, 0400) == 0;
}

static bool other_user_cannot_reopen(int fd)
{
    char byte;
    if (setgid(65534) || setuid(65534))
        return false;
    REFUSED(reopen(fd, O_RDWR), EACCES);
    REFUSED(reopen(fd, O_RDONLY), EACCES);
    REFUSED(fchmod(fd, 0666), EPERM);
    return is_read_only(fd) && pread(fd, &byte, 1, 0) == 1;
}

/* Forks a child that dies with the test. */
static pid_t fork_child(void)
{
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL))
        _exit(1);
    return child;
}

/* Runs the function in a child, where it must return true. */
static void check_in_child(bool (*run)(int fd), int fd)
{
    int status;
    pid_t child = fork_child();
    if (child == 0)
        _exit(run(fd) ? 0 : 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void shared_block_is_read_only(void **state)
{
    (void)state;
    struct shuf__block block;
    struct shuf__computation computation = computation_of_bytes(UNIT);
    computation_alloc(UNIT, &block);
    int fd = shuf__memfd_share(&block);
    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    computation_fill_block(&block);
    assert_true(is_read_only(fd));
    assert_true(is_read_only(block.fd));
    if (geteuid() == 0)
        check_in_child(other_user_cannot_reopen, fd);
    check_in_child(owner_cannot_change_file, fd);
    computation_check_block(&computation, &block);
    close(fd);
    backend->ops->free(backend, &block);
}

static void shared_block_shows_values(void **state)
{
    (void)state;
    struct shuf__block block;
    computation_alloc(UNIT, &block);
    int fd = shuf__memfd_share(&block);
    void *view = map(fd, PROT_READ);
    assert_true(view != MAP_FAILED);
    computation_fill_block(&block);
    assert_memory_equal(view, block.host, UNIT);
    backend->ops->free(backend, &block);
    /* The mapping stays valid after the block was freed. */
    assert_true(computation_has_nonzero(view, UNIT));
    munmap(view, UNIT);
    close(fd);
}

/* Locks of a process would make calls of the daemon search them. */
static bool cannot_lock(int fd)
{
    const struct flock byte = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_len = 1};
    REFUSED(fcntl(fd, F_SETLK, &byte), EAGAIN);
    REFUSED(fcntl(fd, F_OFD_SETLK, &byte), EAGAIN);
    REFUSED(flock(fd, LOCK_SH | LOCK_NB), EWOULDBLOCK);
    return true;
}

static void check_not_lockable(struct shuf__block *block)
{
    int fd = shuf__memfd_share(block), again;
    check_in_child(cannot_lock, fd);
    close(fd);
    assert_true(shuf__memfd_is_unmapped(block));
    again = shuf__memfd_share(block); /* the close() has not ended the lock */
    check_in_child(cannot_lock, again);
    close(again);
    shuf__memfd_free(block);
}

static void shared_block_cannot_be_locked(void **state)
{
    (void)state;
    struct shuf__block block;
    struct shuf__error error;
    assert_int_equal(shuf__memfd_alloc(UNIT, &block, &error), SHUF_OK);
    check_not_lockable(&block);
    assert_int_equal(shuf__memfd_alloc_writable(UNIT, &block, &error), SHUF_OK);
    check_not_lockable(&block);
}

/* ---- Unmapped ------------------------------------------------------------- */

static void descriptor_or_mapping_is_detected(void **state)
{
    (void)state;
    struct shuf__block block;
    computation_alloc(UNIT, &block);
    assert_true(shuf__memfd_is_unmapped(&block));
    computation_fill_block(&block);
    assert_true(shuf__memfd_is_unmapped(&block)); /* the mapping of this process does not count */
    int fd = shuf__memfd_share(&block), again = reopen(fd, O_RDONLY);
    assert_false(shuf__memfd_is_unmapped(&block));
    close(fd);
    assert_false(shuf__memfd_is_unmapped(&block));
    void *view = map(again, PROT_READ);
    close(again);
    assert_false(shuf__memfd_is_unmapped(&block));
    munmap(view, UNIT / 2);
    assert_false(shuf__memfd_is_unmapped(&block));
    munmap((char *)view + UNIT / 2, UNIT / 2);
    assert_true(shuf__memfd_is_unmapped(&block));
    assert_true(shuf__memfd_is_unmapped(&block));
    /* Opening the block does not wait for the file lease of the probe. */
    double begin = computation_seconds();
    fd = shuf__memfd_share(&block);
    assert_true(fd >= 0 && computation_seconds() - begin < 5);
    assert_false(shuf__memfd_is_unmapped(&block));
    close(fd);
    backend->ops->free(backend, &block);
}

/* Starts a child that calls `prepare` and then waits to be killed. */
static pid_t start_child(void (*prepare)(void *context), void *context)
{
    int ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork_child();
    if (child == 0) {
        if (prepare)
            prepare(context);
        if (write(ready[1], "", 1) == 1)
            pause();
        _exit(1);
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return child;
}

static void kill_child(pid_t child)
{
    int status;
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void map_and_close(void *context)
{
    int fd = *(const int *)context;
    if (map(fd, PROT_READ) == MAP_FAILED || close(fd))
        _exit(1);
}

static void mapping_of_child_is_detected(void **state)
{
    (void)state;
    struct shuf__block block;
    computation_alloc(UNIT, &block);
    int fd = shuf__memfd_share(&block);
    pid_t child = start_child(map_and_close, &fd);
    close(fd);
    assert_false(shuf__memfd_is_unmapped(&block));
    kill_child(child);
    assert_true(shuf__memfd_is_unmapped(&block));

    fd = shuf__memfd_share(&block);
    void *view = map(fd, PROT_READ);
    close(fd);
    child = start_child(NULL, NULL); /* inherits the mapping */
    munmap(view, UNIT);
    assert_false(shuf__memfd_is_unmapped(&block));
    kill_child(child);
    assert_true(shuf__memfd_is_unmapped(&block));
    backend->ops->free(backend, &block);
}

/* A process of the daemon's user can open the block during the probe. The kernel then sends a
 * signal to the probing process, which must survive this signal. */
static void open_during_probe_is_survived(void **state)
{
    (void)state;
    char path[64];
    struct shuf__block block;
    unsigned mapped = 0;
    computation_alloc(UNIT, &block);
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)getpid(), block.fd);
    pid_t child = fork_child();
    while (child == 0)
        close(open(path, O_RDONLY));
    for (double end = computation_seconds() + 0.3; computation_seconds() < end;)
        mapped += !shuf__memfd_is_unmapped(&block);
    kill_child(child);
    printf("seen open %u times\n", mapped);
    backend->ops->free(backend, &block);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shared_block_is_read_only),
        cmocka_unit_test(shared_block_shows_values),
        cmocka_unit_test(shared_block_cannot_be_locked),
        cmocka_unit_test(descriptor_or_mapping_is_detected),
        cmocka_unit_test(mapping_of_child_is_detected),
        cmocka_unit_test(open_during_probe_is_survived),
    };
    backend = computation_open(argc == 2 ? argv[1] : "");
    computation_kind = SHUF__MEMORY_MEMFD; /* every backend makes memfds */
    int failed = cmocka_run_group_tests_name(computation_kind_name(), tests, NULL, NULL);
    backend->ops->close(backend);
    return failed != 0;
}
