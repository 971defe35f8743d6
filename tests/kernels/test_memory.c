/* SPDX-License-Identifier: MIT
 *
 * The contract of kernels/backend.h for blocks, on the backend of the command line. Blocks are
 * zeroed, have the fields of their kind, and free all their resources. Waits for computations have
 * short timeouts, or are cancelled. Also the contract of kernels/host/memfd.h.
 */
#include "host/memfd.h"
#include "support/child.h"
#include "support/cmocka_all.h"
#include "support/computation.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <pthread.h>
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

/* ---- Every kind ---- */

static void expect_zeros(const struct shuf__block *block)
{
    static const char zeros[UNIT];
    static char part[UNIT];
    struct shuf__error error = {0};
    for (uint64_t offset = 0; offset < block->bytes; offset += UNIT) {
        memset(part, 0xA5, UNIT);
        assert_int_equal(backend->ops->read(backend, block, offset, UNIT, part, &error), SHUF_OK);
        assert_memory_equal(part, zeros, UNIT);
    }
}

/* Allocates several blocks at once and three times, so that the system probably reuses freed
 * memory. */
static void new_block_is_zero(void **state)
{
    (void)state;
    enum { BLOCKS = 4 };
    struct shuf__block blocks[BLOCKS];
    for (int turn = 0; turn < 3; turn++) {
        for (int i = 0; i < BLOCKS; i++) {
            computation_alloc((uint64_t)(i + 1) * UNIT, &blocks[i]);
            expect_zeros(&blocks[i]);
        }
        for (int i = 0; i < BLOCKS; i++)
            computation_fill_block(&blocks[i]);
        for (int i = 0; i < BLOCKS; i++)
            backend->ops->free(backend, &blocks[i]);
    }
}

static void block_has_its_sharing_information(void **state)
{
    (void)state;
    struct shuf__block block;
    computation_alloc(3 * UNIT, &block);
    assert_int_equal(block.kind, computation_kind);
    assert_int_equal(block.bytes, 3 * UNIT);
    assert_non_null(block.memory);
    assert_ptr_equal(block.host, computation_kind == SHUF__MEMORY_MEMFD ? block.memory : NULL);
    assert_int_equal(computation_has_nonzero(block.ipc, sizeof block.ipc),
                     computation_kind == SHUF__MEMORY_CUDA_IPC);
    if (computation_kind == SHUF__MEMORY_CUDA_IPC)
        assert_int_equal(block.fd, -1);
    else
        assert_int_equal(fcntl(block.fd, F_GETFD), FD_CLOEXEC);
    backend->ops->free(backend, &block);
    assert_null(block.memory);
    backend->ops->free(backend, &block); /* freeing a freed block has no effect */
}

/* Two blocks at the same time keep their own values. */
static void two_blocks_keep_their_values(void **state)
{
    (void)state;
    struct shuf__block first, second;
    struct shuf__computation computation = computation_of_bytes(UNIT), other = computation;
    other.request.permutation.epoch++;
    computation_alloc(UNIT, &first);
    computation_fill(&computation, &first);
    computation_alloc(UNIT, &second);
    computation_fill(&other, &second);
    computation_check_block(&computation, &first);
    computation_check_block(&other, &second);
    backend->ops->free(backend, &first);
    computation_check_block(&other, &second);
    backend->ops->free(backend, &second);
}

static void refuse_allocation(void)
{
    struct shuf__block block;
    struct shuf__error error = {0};
    assert_int_equal(
        backend->ops->alloc(backend, computation_kind, UINT64_C(1) << 50, &block, &error),
        SHUF_NO_MEMORY);
}

static void free_closes_descriptors(void **state)
{
    (void)state;
    struct shuf__block block;
    computation_alloc(UNIT, &block); /* the first use opens resources that a driver keeps */
    computation_fill_block(&block);
    backend->ops->free(backend, &block);
    int before = count_descriptors();
    for (int i = 0; i < 50; i++) {
        computation_alloc(UNIT, &block);
        computation_fill_block(&block);
        backend->ops->free(backend, &block);
        refuse_allocation();
    }
    assert_int_equal(count_descriptors(), before);
}

static void free_returns_device_memory(void **state)
{
    (void)state;
    uint64_t before, after, total;
    struct shuf__block block;
    struct shuf__error error = {0};
    if (computation_kind == SHUF__MEMORY_MEMFD)
        return; /* other processes use host memory too, so its amount cannot be compared */
    computation_alloc(64 * UNIT, &block);
    backend->ops->free(backend, &block);
    assert_int_equal(backend->ops->memory(backend, computation_kind, &before, &total, &error),
                     SHUF_OK);
    for (int i = 0; i < 20; i++) {
        computation_alloc(64 * UNIT, &block);
        computation_fill_block(&block);
        backend->ops->free(backend, &block);
    }
    assert_int_equal(backend->ops->memory(backend, computation_kind, &after, &total, &error),
                     SHUF_OK);
    assert_in_range(after, before - 64 * UNIT, UINT64_MAX);
}

/* ---- Waiting ---- */

static uint64_t fingerprint_of(const struct shuf__block *block,
                               const struct shuf__computation *computation)
{
    uint64_t sum = 0;
    struct shuf__error error = {0};
    assert_int_equal(backend->ops->fingerprint(backend, block, computation_width(computation),
                                               computation_value_count(computation), 0, &sum,
                                               &error),
                     SHUF_OK);
    return sum;
}

/* No wait exceeds its timeout by much. The result does not depend on the number of waits. */
static void check_wait_timeout(struct shuf__computation computation, uint64_t timeout_ns)
{
    struct shuf__permutation *p = &computation.request.permutation;
    struct shuf__block block, workspace;
    struct shuf__error error = {0};
    bool done = false;
    uint64_t ns = 0;
    computation_alloc_workspace(&computation, &workspace);
    computation_alloc(computation_value_count(&computation) * computation_width(&computation),
                      &block);
    computation_fill(&computation, &block);
    uint64_t expected = fingerprint_of(&block, &computation);
    p->epoch++;
    computation_fill(&computation, &block);
    p->epoch--;
    assert_int_not_equal(fingerprint_of(&block, &computation), expected);
    assert_int_equal(backend->ops->launch(backend, &computation, &block, &error), SHUF_OK);
    for (double deadline = computation_seconds() + 60; !done;) {
        double begin = computation_seconds();
        assert_int_equal(backend->ops->wait(backend, timeout_ns, &done, &ns, &error), SHUF_OK);
        assert_true(computation_seconds() - begin < 0.5 && computation_seconds() < deadline);
    }
    assert_in_range(ns, 1, 60000000000);
    assert_int_equal(fingerprint_of(&block, &computation), expected);
    backend->ops->free(backend, &block);
    backend->ops->free(backend, &workspace);
}

static void waits_end_at_their_timeouts(void **state)
{
    (void)state;
    static const uint64_t timeouts[] = {0, 1000, 200000, UINT64_MAX};
    for (size_t i = 0; i < sizeof timeouts / sizeof timeouts[0]; i++) {
        check_wait_timeout(computation_whole(SHUF_ALGORITHM_PHILOX24, 1000, i, 1), timeouts[i]);
        check_wait_timeout(computation_whole(SHUF_ALGORITHM_LCG, 4096, i, 1), timeouts[i]);
        check_wait_timeout(computation_whole(SHUF_ALGORITHM_LCG, (1 << 24) + 1, i, 1), timeouts[i]);
    }
}

static bool always(void *context)
{
    (void)context;
    return true;
}

/* 2^24 values take a single launch on a GPU, so the cancelling must stop the copy of the result. */
static void cancelled_launch_changes_no_later_result(void **state)
{
    (void)state;
    struct shuf__block block;
    struct shuf__error error = {0};
    struct shuf__computation good = computation_of_bytes(UNIT), bad = good;
    uint64_t ns;
    computation_alloc(64 * UNIT, &block);
    int before = count_descriptors();
    for (unsigned bits = 16; bits <= 24; bits += 8) {
        struct shuf__permutation *p = &bad.request.permutation;
        p->n = p->count = (UINT64_C(1) << bits) + 1;
        bad.cancelled = always;
        shuf_status status = shuf__backend_compute(backend, &bad, &block, &ns, &error);
        if (computation_kind == SHUF__MEMORY_MEMFD || status != SHUF_OK)
            assert_int_equal(status, SHUF_CANCELLED);
        computation_fill(&good, &block);
        computation_check_block(&good, &block);
    }
    assert_int_equal(count_descriptors(), before);
    backend->ops->free(backend, &block);
}

static void event_follows_each_launch(void **state)
{
    (void)state;
    struct shuf__block block;
    struct shuf__error error = {0};
    struct shuf__computation computation = computation_of_bytes(UNIT);
    struct shuf__permutation *p = &computation.request.permutation;
    uint8_t handle[SHUF__IPC_HANDLE] = {0};
    uint64_t ns;
    if (computation_kind != SHUF__MEMORY_CUDA_IPC)
        return;
    computation_alloc(UNIT, &block);
    for (p->n = p->count = 1024; p->n <= UNIT / 4; p->n *= 4, p->count = p->n) {
        bool done = false;
        assert_int_equal(backend->ops->launch(backend, &computation, &block, &error), SHUF_OK);
        assert_int_equal(backend->ops->event(backend, &block, handle, &error), SHUF_OK);
        assert_true(computation_has_nonzero(handle, sizeof handle));
        assert_int_equal(backend->ops->wait(backend, UINT64_MAX, &done, &ns, &error), SHUF_OK);
        assert_true(done);
        computation_check_block(&computation, &block);
    }
    backend->ops->free(backend, &block);
}

/* ---- Threads ---- */

/* This test must be the first one, because a later computation starts the process's team of
 * threads. */
static void quick_job_starts_no_thread(void **state)
{
    (void)state;
    enum { FEW = 1024 }; /* look-ups, which the daemon's loop does itself */
    uint64_t at[FEW] = {0};
    struct shuf__block block;
    struct shuf__error error;
    struct shuf__computation computation = computation_whole(SHUF_ALGORITHM_PHILOX24, 1000, 5, 6),
                             look_up = computation_whole(SHUF_ALGORITHM_PRIMEFOLD, 1000, 5, 6);
    look_up.request = (struct shuf__request){
        .kind = SHUF__LOOK_UP, .look_up = {.permutation = look_up.request.permutation}};
    computation_alloc(UNIT, &block);
    int before = count_entries("/proc/self/task");
    computation_fill(&computation, &block);
    fingerprint_of(&block, &computation);
    assert_int_equal(backend->ops->look_up(backend, &look_up, at, FEW, &error), SHUF_OK);
    assert_int_equal(count_entries("/proc/self/task"), before);
    backend->ops->free(backend, &block);
}

static void *compute_in_thread(void *context)
{
    struct shuf__block *block = context;
    struct shuf__computation computation = computation_of_bytes(block->bytes);
    struct shuf__error error = {0};
    uint64_t ns;
    if (backend->ops->alloc(backend, block->kind, block->bytes, block, &error) ||
        shuf__backend_compute(backend, &computation, block, &ns, &error)) {
        fprintf(stderr, "%s\n", error.text);
        return NULL;
    }
    return block;
}

static void any_thread_may_use_backend(void **state)
{
    (void)state;
    struct shuf__block block = {.kind = computation_kind, .bytes = UNIT};
    struct shuf__computation computation = computation_of_bytes(UNIT);
    pthread_t thread;
    void *result;
    assert_int_equal(pthread_create(&thread, NULL, compute_in_thread, &block), 0);
    pthread_join(thread, &result);
    assert_ptr_equal(result, &block);
    computation_check_block(&computation, &block);
    backend->ops->free(backend, &block);
}

static void *query_memory(void *context)
{
    enum shuf__memory kind = *(const enum shuf__memory *)context;
    uint64_t available, total;
    struct shuf__error error = {0};
    for (int i = 0; i < 200; i++)
        if (backend->ops->memory(backend, kind, &available, &total, &error) || available > total)
            return NULL;
    return context;
}

static void memory_is_reported_during_computations(void **state)
{
    (void)state;
    struct shuf__block block;
    pthread_t thread;
    void *result;
    computation_alloc(16 * UNIT, &block);
    assert_int_equal(pthread_create(&thread, NULL, query_memory, &computation_kind), 0);
    for (int i = 0; i < 20; i++)
        computation_fill_block(&block);
    pthread_join(thread, &result);
    assert_ptr_equal(result, &computation_kind);
    backend->ops->free(backend, &block);
}

/* ---- Memfds: sealed ---- */

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

/* ---- Memfds: unmapped ---- */

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
        cmocka_unit_test(quick_job_starts_no_thread),
        cmocka_unit_test(new_block_is_zero),
        cmocka_unit_test(block_has_its_sharing_information),
        cmocka_unit_test(two_blocks_keep_their_values),
        cmocka_unit_test(free_closes_descriptors),
        cmocka_unit_test(free_returns_device_memory),
        cmocka_unit_test(waits_end_at_their_timeouts),
        cmocka_unit_test(cancelled_launch_changes_no_later_result),
        cmocka_unit_test(event_follows_each_launch),
        cmocka_unit_test(any_thread_may_use_backend),
        cmocka_unit_test(memory_is_reported_during_computations),
    };
    const struct CMUnitTest memfd_tests[] = {
        cmocka_unit_test(shared_block_is_read_only),
        cmocka_unit_test(shared_block_shows_values),
        cmocka_unit_test(shared_block_cannot_be_locked),
        cmocka_unit_test(descriptor_or_mapping_is_detected),
        cmocka_unit_test(mapping_of_child_is_detected),
        cmocka_unit_test(open_during_probe_is_survived),
    };
    const int failed = computation_main(argc, argv, tests);
    backend = computation_open(argc == 2 ? argv[1] : "");
    computation_kind = SHUF__MEMORY_MEMFD; /* every backend makes memfds */
    const int failed_memfd = cmocka_run_group_tests_name("memfd", memfd_tests, NULL, NULL);
    backend->ops->close(backend);
    return failed + failed_memfd;
}
