/* SPDX-License-Identifier: MIT
 *
 * What kernels/backend.h and kernels/memfd.h promise of blocks, on the backend
 * that the command line names: wiped, sealed, known to be mapped or not, and
 * given back with all that belongs to them; and of work that is waited for with
 * little patience, or not to its end.
 */
#include "memfd.h"
#include "shuf/philox24.h"
#include "support/cmocka_all.h"
#include "support/jobs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { UNIT = SHUF__BLOCK_UNIT };

static struct shuf__job filling_job(uint64_t bytes)
{
    return jobs_whole(SHUF_ALGORITHM_PHILOX24, bytes / 4, 3, 4);
}

static void fill(struct shuf__block *block)
{
    struct shuf__job job = filling_job(block->bytes);
    jobs_fill(&job, block);
}

/* ---- Every kind ----------------------------------------------------------- */

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

/* Several at once and again, so that what was freed is likely to be given out anew. */
static void a_block_is_wiped(void **state)
{
    (void)state;
    enum { BLOCKS = 4 };
    struct shuf__block blocks[BLOCKS];
    for (int turn = 0; turn < 3; turn++) {
        for (int i = 0; i < BLOCKS; i++) {
            jobs_alloc((uint64_t)(i + 1) * UNIT, &blocks[i]);
            expect_zeros(&blocks[i]);
        }
        for (int i = 0; i < BLOCKS; i++)
            fill(&blocks[i]);
        for (int i = 0; i < BLOCKS; i++)
            backend->ops->free(backend, &blocks[i]);
    }
}

static bool any(const uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (bytes[i])
            return true;
    return false;
}

static void a_block_tells_how_it_is_shared(void **state)
{
    (void)state;
    struct shuf__block block;
    jobs_alloc(3 * UNIT, &block);
    assert_int_equal(block.kind, jobs_kind);
    assert_int_equal(block.bytes, 3 * UNIT);
    assert_non_null(block.memory);
    assert_ptr_equal(block.host, jobs_kind == SHUF__MEMORY_MEMFD ? block.memory : NULL);
    assert_int_equal(any(block.ipc, sizeof block.ipc), jobs_kind == SHUF__MEMORY_CUDA_IPC);
    if (jobs_kind == SHUF__MEMORY_CUDA_IPC)
        assert_int_equal(block.fd, -1);
    else
        assert_int_equal(fcntl(block.fd, F_GETFD), FD_CLOEXEC);
    backend->ops->free(backend, &block);
    assert_null(block.memory);
    backend->ops->free(backend, &block); /* as if it had never been */
}

static void expect_filled(const struct shuf__block *block, const struct shuf__job *job)
{
    uint64_t values = jobs_values(job), sum = 0;
    uint32_t *read = malloc(values * sizeof *read);
    struct shuf__error error = {0};
    shuf_philox24 f = shuf_philox24_make(job->n, job->seed, job->epoch);
    assert_non_null(read);
    assert_int_equal(backend->ops->read(backend, block, 0, values * sizeof *read, read, &error),
                     SHUF_OK);
    for (uint64_t i = 0; i < values; i++) /* n is a power of two: position x holds f(x) */
        if (read[i] != shuf_philox24_forward(&f, i))
            fail_msg("value %llu is %u", (unsigned long long)i, read[i]);
    assert_int_equal(backend->ops->fingerprint(backend, block, 4, values, &sum, &error), SHUF_OK);
    free(read);
}

/* Of two blocks, each keeps its own values. */
static void a_second_block_while_the_first_is_out(void **state)
{
    (void)state;
    struct shuf__block first, second;
    struct shuf__job job = filling_job(UNIT), other = job;
    other.epoch++;
    jobs_alloc(UNIT, &first);
    jobs_fill(&job, &first);
    jobs_alloc(UNIT, &second);
    jobs_fill(&other, &second);
    expect_filled(&first, &job);
    expect_filled(&second, &other);
    backend->ops->free(backend, &first);
    expect_filled(&second, &other);
    backend->ops->free(backend, &second);
}

static int count_entries(const char *path)
{
    int count = 0;
    DIR *directory = opendir(path);
    assert_non_null(directory);
    while (readdir(directory))
        count++;
    closedir(directory);
    return count;
}

static int open_descriptors(void)
{
    return count_entries("/proc/self/fd");
}

static void refuse_one(void)
{
    struct shuf__block block;
    struct shuf__error error = {0};
    assert_int_equal(backend->ops->alloc(backend, jobs_kind, UINT64_C(1) << 50, &block, &error),
                     SHUF_NO_MEMORY);
}

static void descriptors_are_given_back(void **state)
{
    (void)state;
    struct shuf__block block;
    jobs_alloc(UNIT, &block); /* whatever a driver opens once is open then */
    fill(&block);
    backend->ops->free(backend, &block);
    int before = open_descriptors();
    for (int i = 0; i < 50; i++) {
        jobs_alloc(UNIT, &block);
        fill(&block);
        backend->ops->free(backend, &block);
        refuse_one();
    }
    assert_int_equal(open_descriptors(), before);
}

static void device_memory_is_given_back(void **state)
{
    (void)state;
    uint64_t before, after, total;
    struct shuf__block block;
    struct shuf__error error = {0};
    if (jobs_kind == SHUF__MEMORY_MEMFD)
        return; /* the machine's memory is everybody's */
    jobs_alloc(64 * UNIT, &block);
    backend->ops->free(backend, &block);
    assert_int_equal(backend->ops->memory(backend, jobs_kind, &before, &total, &error), SHUF_OK);
    for (int i = 0; i < 20; i++) {
        jobs_alloc(64 * UNIT, &block);
        fill(&block);
        backend->ops->free(backend, &block);
    }
    assert_int_equal(backend->ops->memory(backend, jobs_kind, &after, &total, &error), SHUF_OK);
    assert_in_range(after, before - 64 * UNIT, UINT64_MAX);
}

/* ---- Waiting -------------------------------------------------------------- */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static uint64_t fingerprint_of(const struct shuf__block *block, const struct shuf__job *job)
{
    uint64_t sum = 0;
    struct shuf__error error = {0};
    assert_int_equal(
        backend->ops->fingerprint(backend, block, job->width, jobs_values(job), &sum, &error),
        SHUF_OK);
    return sum;
}

/* No wait takes much longer than it was given, and all of them together are the same as one. */
static void check_patience(struct shuf__job job, uint64_t patience_ns)
{
    struct shuf__block block, workspace;
    struct shuf__error error = {0};
    bool done = false;
    uint64_t ns = 0;
    jobs_alloc_workspace(&job, &workspace);
    jobs_alloc(jobs_values(&job) * job.width, &block);
    jobs_fill(&job, &block);
    uint64_t expected = fingerprint_of(&block, &job);
    job.epoch++;
    jobs_fill(&job, &block);
    job.epoch--;
    assert_int_not_equal(fingerprint_of(&block, &job), expected);
    assert_int_equal(backend->ops->launch(backend, &job, &block, &error), SHUF_OK);
    for (double deadline = now() + 60; !done;) {
        double begin = now();
        assert_int_equal(backend->ops->wait(backend, patience_ns, &done, &ns, &error), SHUF_OK);
        assert_true(now() - begin < 0.5 && now() < deadline);
    }
    assert_in_range(ns, 1, 60000000000);
    assert_int_equal(fingerprint_of(&block, &job), expected);
    backend->ops->free(backend, &block);
    backend->ops->free(backend, &workspace);
}

static void waiting_with_little_patience(void **state)
{
    (void)state;
    static const uint64_t patience[] = {0, 1000, 200000, UINT64_MAX};
    for (size_t i = 0; i < sizeof patience / sizeof patience[0]; i++) {
        check_patience(jobs_whole(SHUF_ALGORITHM_PHILOX24, 1000, i, 1), patience[i]);
        check_patience(jobs_whole(SHUF_ALGORITHM_LCG, 4096, i, 1), patience[i]);
        check_patience(jobs_whole(SHUF_ALGORITHM_LCG, (1 << 24) + 1, i, 1), patience[i]);
    }
}

static bool yes(void *context)
{
    (void)context;
    return true;
}

/* With 2^24 values the work is a single launch on a GPU, so what is cancelled is the copying. */
static void a_cancelled_launch_leaves_nothing_behind(void **state)
{
    (void)state;
    struct shuf__block block;
    struct shuf__error error = {0};
    struct shuf__job good = filling_job(UNIT), bad = good;
    uint64_t ns;
    jobs_alloc(64 * UNIT, &block);
    int before = open_descriptors();
    for (unsigned bits = 16; bits <= 24; bits += 8) {
        bad.n = bad.count = (UINT64_C(1) << bits) + 1;
        bad.cancelled = yes;
        shuf_status status = shuf__backend_compute(backend, &bad, &block, &ns, &error);
        if (jobs_kind == SHUF__MEMORY_MEMFD || status != SHUF_OK)
            assert_int_equal(status, SHUF_CANCELLED);
        jobs_fill(&good, &block);
        expect_filled(&block, &good);
    }
    assert_int_equal(open_descriptors(), before);
    backend->ops->free(backend, &block);
}

static void an_event_lies_behind_each_launch(void **state)
{
    (void)state;
    struct shuf__block block;
    struct shuf__error error = {0};
    struct shuf__job job = filling_job(UNIT);
    uint8_t handle[SHUF__IPC_HANDLE] = {0};
    uint64_t ns;
    if (jobs_kind != SHUF__MEMORY_CUDA_IPC)
        return;
    jobs_alloc(UNIT, &block);
    for (job.n = job.count = 1024; job.n <= UNIT / 4; job.n *= 4, job.count = job.n) {
        bool done = false;
        assert_int_equal(backend->ops->launch(backend, &job, &block, &error), SHUF_OK);
        assert_int_equal(backend->ops->event(backend, &block, handle, &error), SHUF_OK);
        assert_true(any(handle, sizeof handle));
        assert_int_equal(backend->ops->wait(backend, UINT64_MAX, &done, &ns, &error), SHUF_OK);
        assert_true(done);
        expect_filled(&block, &job);
    }
    backend->ops->free(backend, &block);
}

/* ---- Threads -------------------------------------------------------------- */

/* Before anything has started a team, so this stands first. */
static void a_quick_job_starts_no_thread(void **state)
{
    (void)state;
    struct shuf__block block;
    struct shuf__job job = jobs_whole(SHUF_ALGORITHM_PHILOX24, 1000, 5, 6);
    jobs_alloc(UNIT, &block);
    int before = count_entries("/proc/self/task");
    jobs_fill(&job, &block);
    fingerprint_of(&block, &job);
    assert_int_equal(count_entries("/proc/self/task"), before);
    backend->ops->free(backend, &block);
}

static void *run_elsewhere(void *context)
{
    struct shuf__block *block = context;
    struct shuf__job job = filling_job(block->bytes);
    struct shuf__error error = {0};
    uint64_t ns;
    if (backend->ops->alloc(backend, block->kind, block->bytes, block, &error) ||
        shuf__backend_compute(backend, &job, block, &ns, &error)) {
        fprintf(stderr, "%s\n", error.text);
        return NULL;
    }
    return block;
}

static void any_thread_may_drive(void **state)
{
    (void)state;
    struct shuf__block block = {.kind = jobs_kind, .bytes = UNIT};
    struct shuf__job job = filling_job(UNIT);
    pthread_t thread;
    void *result;
    assert_int_equal(pthread_create(&thread, NULL, run_elsewhere, &block), 0);
    pthread_join(thread, &result);
    assert_ptr_equal(result, &block);
    expect_filled(&block, &job);
    backend->ops->free(backend, &block);
}

static void *ask_for_memory(void *context)
{
    enum shuf__memory kind = *(const enum shuf__memory *)context;
    uint64_t available, total;
    struct shuf__error error = {0};
    for (int i = 0; i < 200; i++)
        if (backend->ops->memory(backend, kind, &available, &total, &error) || available > total)
            return NULL;
    return context;
}

static void memory_is_told_while_others_work(void **state)
{
    (void)state;
    struct shuf__block block;
    pthread_t thread;
    void *result;
    jobs_alloc(16 * UNIT, &block);
    assert_int_equal(pthread_create(&thread, NULL, ask_for_memory, &jobs_kind), 0);
    for (int i = 0; i < 20; i++)
        fill(&block);
    pthread_join(thread, &result);
    assert_ptr_equal(result, &jobs_kind);
    backend->ops->free(backend, &block);
}

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

/* A descriptor for reading only. */
static bool cannot_be_changed_through(int fd)
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

/* The file's owner can open it for writing, but no more than that. */
static bool seals_hold_for_the_owner(int fd)
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

static bool a_stranger_cannot_reopen(int fd)
{
    char byte;
    if (setgid(65534) || setuid(65534))
        return false;
    REFUSED(reopen(fd, O_RDWR), EACCES);
    REFUSED(reopen(fd, O_RDONLY), EACCES);
    REFUSED(fchmod(fd, 0666), EPERM);
    return cannot_be_changed_through(fd) && pread(fd, &byte, 1, 0) == 1;
}

/* It does not outlive a test that fails. */
static pid_t fork_child(void)
{
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL))
        _exit(1);
    return child;
}

/* Runs it in a child, which must say true. */
static void in_a_child(bool (*run)(int fd), int fd)
{
    int status;
    pid_t child = fork_child();
    if (child == 0)
        _exit(run(fd) ? 0 : 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void what_is_shared_cannot_be_changed(void **state)
{
    (void)state;
    struct shuf__block block;
    struct shuf__job job = filling_job(UNIT);
    jobs_alloc(UNIT, &block);
    int fd = shuf__memfd_share(&block);
    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    fill(&block);
    assert_true(cannot_be_changed_through(fd));
    assert_true(cannot_be_changed_through(block.fd));
    if (geteuid() == 0)
        in_a_child(a_stranger_cannot_reopen, fd);
    in_a_child(seals_hold_for_the_owner, fd);
    expect_filled(&block, &job);
    close(fd);
    backend->ops->free(backend, &block);
}

static void values_are_seen_through_what_is_shared(void **state)
{
    (void)state;
    struct shuf__block block;
    jobs_alloc(UNIT, &block);
    int fd = shuf__memfd_share(&block);
    void *view = map(fd, PROT_READ);
    assert_true(view != MAP_FAILED);
    fill(&block);
    assert_memory_equal(view, block.host, UNIT);
    backend->ops->free(backend, &block);
    assert_true(any(view, UNIT)); /* it stays where the block is gone */
    munmap(view, UNIT);
    close(fd);
}

/* ---- Unmapped ------------------------------------------------------------- */

static void a_descriptor_or_a_mapping_is_noticed(void **state)
{
    (void)state;
    struct shuf__block block;
    jobs_alloc(UNIT, &block);
    assert_true(shuf__memfd_is_unmapped(&block));
    fill(&block);
    assert_true(shuf__memfd_is_unmapped(&block)); /* our own mapping is not in the way */
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
    double begin = now(); /* who opens it does not wait for a lease */
    fd = shuf__memfd_share(&block);
    assert_true(fd >= 0 && now() - begin < 5);
    assert_false(shuf__memfd_is_unmapped(&block));
    close(fd);
    backend->ops->free(backend, &block);
}

/* A child that does what `prepare` says, then waits to be killed. */
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

static void a_childs_mapping_is_noticed(void **state)
{
    (void)state;
    struct shuf__block block;
    jobs_alloc(UNIT, &block);
    int fd = shuf__memfd_share(&block);
    pid_t child = start_child(map_and_close, &fd);
    close(fd);
    assert_false(shuf__memfd_is_unmapped(&block));
    kill_child(child);
    assert_true(shuf__memfd_is_unmapped(&block));

    fd = shuf__memfd_share(&block);
    void *view = map(fd, PROT_READ);
    close(fd);
    child = start_child(NULL, NULL); /* which inherits the mapping */
    munmap(view, UNIT);
    assert_false(shuf__memfd_is_unmapped(&block));
    kill_child(child);
    assert_true(shuf__memfd_is_unmapped(&block));
    backend->ops->free(backend, &block);
}

/* The daemon's own user can open the block in the very moment in which it is probed. The kernel
 * then signals the prober, which must survive that. */
static void an_opener_in_between_is_survived(void **state)
{
    (void)state;
    char path[64];
    struct shuf__block block;
    unsigned mapped = 0;
    jobs_alloc(UNIT, &block);
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)getpid(), block.fd);
    pid_t child = fork_child();
    while (child == 0)
        close(open(path, O_RDONLY));
    for (double end = now() + 0.3; now() < end;)
        mapped += !shuf__memfd_is_unmapped(&block);
    kill_child(child);
    printf("seen open %u times\n", mapped);
    backend->ops->free(backend, &block);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest of_any_kind[] = {
        cmocka_unit_test(a_quick_job_starts_no_thread),
        cmocka_unit_test(a_block_is_wiped),
        cmocka_unit_test(a_block_tells_how_it_is_shared),
        cmocka_unit_test(a_second_block_while_the_first_is_out),
        cmocka_unit_test(descriptors_are_given_back),
        cmocka_unit_test(device_memory_is_given_back),
        cmocka_unit_test(waiting_with_little_patience),
        cmocka_unit_test(a_cancelled_launch_leaves_nothing_behind),
        cmocka_unit_test(an_event_lies_behind_each_launch),
        cmocka_unit_test(any_thread_may_drive),
        cmocka_unit_test(memory_is_told_while_others_work),
    };
    const struct CMUnitTest of_memfd[] = {
        cmocka_unit_test(what_is_shared_cannot_be_changed),
        cmocka_unit_test(values_are_seen_through_what_is_shared),
        cmocka_unit_test(a_descriptor_or_a_mapping_is_noticed),
        cmocka_unit_test(a_childs_mapping_is_noticed),
        cmocka_unit_test(an_opener_in_between_is_survived),
    };
    int failed = 0;
    backend = jobs_open(argc == 2 ? argv[1] : "");
    while (jobs_next_kind()) {
        failed += cmocka_run_group_tests_name(jobs_kind_name(), of_any_kind, NULL, NULL);
        if (jobs_kind == SHUF__MEMORY_MEMFD)
            failed += cmocka_run_group_tests_name("sealed", of_memfd, NULL, NULL);
    }
    backend->ops->close(backend);
    return failed != 0;
}
