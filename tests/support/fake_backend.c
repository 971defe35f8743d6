/* SPDX-License-Identifier: MIT
 *
 * See fake_backend.h.
 */
#include "support/fake_backend.h"

#include "backend.h"
#include "server.h"
#include "support/cmocka_all.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sysexits.h>
#include <unistd.h>

struct faults *faults;
struct seen *seen;

/* The server opens one for each lane, and one for the loop. */
struct fake {
    struct shuf__backend base;
    struct shuf__backend_ops ops;
    struct shuf__backend *cpu;
};

static struct shuf__backend *cpu_of(struct shuf__backend *backend)
{
    return ((struct fake *)backend)->cpu;
}

static struct shuf__block host_visible(const struct shuf__block *block)
{
    struct shuf__block copy = *block;
    copy.host = copy.memory;
    return copy;
}

static void device_close(struct shuf__backend *backend)
{
    shuf__cpu_ops.close(cpu_of(backend));
    free(backend);
}

static shuf_status device_memory(struct shuf__backend *backend, enum shuf__memory kind,
                                 uint64_t *available, uint64_t *total, struct shuf__error *error)
{
    (void)backend;
    if (faults->device > 0 && !shuf__memory_is_host(kind)) {
        *total = faults->device;
        *available = faults->device - faults->other_programs - seen->device;
        return SHUF_OK;
    }
    *available = faults->available - (faults->own_blocks_count ? seen->host : 0);
    *total = faults->total;
    return *total > 0 ? SHUF_OK
                      : shuf__cpu_ops.memory(cpu_of(backend), kind, available, total, error);
}

static shuf_status device_alloc(struct shuf__backend *backend, enum shuf__memory kind,
                                uint64_t bytes, struct shuf__block *block,
                                struct shuf__error *error)
{
    (void)backend;
    const unsigned number = ++seen->allocations;
    *block = (struct shuf__block){.kind = kind, .fd = -1};
    if (number >= faults->full_from && number < faults->full_from + faults->full_count) {
        while (faults->full_later)
            usleep(1000);
        return shuf__fail(error, faults->fails_when_full ? SHUF_DEVICE : SHUF_NO_MEMORY,
                          "the device is full");
    }
    shuf_status status = shuf__cpu_ops.alloc(
        cpu_of(backend), kind == SHUF__MEMORY_MEMFD ? kind : SHUF__MEMORY_PRIVATE, bytes, block,
        error);
    block->kind = kind;
    if (!(faults->is_gpu && shuf__memory_is_host(kind)))
        block->host = NULL;
    if (status == SHUF_OK)
        *(shuf__memory_is_host(kind) ? &seen->host : &seen->device) += bytes;
    return status;
}

static void device_free(struct shuf__backend *backend, struct shuf__block *block)
{
    (void)backend;
    *(shuf__memory_is_host(block->kind) ? &seen->host : &seen->device) -= block->bytes;
    if (block->kind != SHUF__MEMORY_MEMFD)
        block->kind = SHUF__MEMORY_PRIVATE;
    shuf__cpu_ops.free(cpu_of(backend), block);
}

static int device_export(const struct shuf__block *block)
{
    return block->kind == SHUF__MEMORY_MEMFD ? shuf__cpu_ops.export_block(block)
                                             : fcntl(block->fd, F_DUPFD_CLOEXEC, 0);
}

static enum shuf__mapped device_mapped(const struct shuf__block *block)
{
    return shuf__cpu_ops.mapped(block);
}

static uint64_t device_committed(const struct shuf__block *block)
{
    return shuf__cpu_ops.committed(block);
}

static shuf_status device_look_up(struct shuf__backend *backend,
                                  const struct shuf__computation *computation, uint64_t *place,
                                  size_t count, struct shuf__error *error)
{
    (void)backend;
    return shuf__cpu_ops.look_up(cpu_of(backend), computation, place, count, error);
}

static struct shuf__workspace device_workspace(const struct shuf__backend *backend,
                                               const struct shuf__request *request,
                                               enum shuf__memory kind)
{
    (void)backend;
    (void)request;
    (void)kind;
    usleep(faults->workspace_us);
    return (struct shuf__workspace){faults->workspace_on_device ? SHUF__MEMORY_CUDA_PRIVATE
                                                                : SHUF__MEMORY_PRIVATE,
                                    faults->workspace_best, faults->workspace_least};
}

/* Overwrites the workspace, because a computation may write to all of it. */
static void count_launch(const struct shuf__block *workspace)
{
    seen->launches++;
    seen->workspace_bytes = workspace ? workspace->bytes : 0;
    seen->workspace_at = workspace ? workspace->memory : NULL;
    if (workspace)
        memset(workspace->memory, 0x5a, workspace->bytes);
}

/* Like a GPU, the fake device completes calls one at a time, in order. Small computations come
 * first: they begin while a call is being completed. */
static void call_device(unsigned us)
{
    const unsigned number = seen->calls++;
    seen->late_calls += number != seen->calls_done;
    while ((int)(seen->calls_done - number) < 0)
        usleep(100);
    usleep(us);
    while (faults->calls_hang)
        usleep(100);
    seen->calls_done++;
}

static void compute_until_cancelled(const struct shuf__computation *computation)
{
    const uint64_t seed = computation->request.permutation.seed;
    while (!computation->cancelled(computation->cancel_context)) {
        if (faults->call_us > 0)
            call_device(faults->call_us);
        else
            usleep(10000);
        seen->calls_of[seed % SEEDS]++;
    }
}

static shuf_status device_launch(struct shuf__backend *backend,
                                 const struct shuf__computation *computation,
                                 struct shuf__block *block, struct shuf__error *error)
{
    count_launch(computation->workspace);
    while (faults->hangs)
        pause();
    const struct shuf__permutation *p = shuf__request_permutation(&computation->request);
    if (p && p->n == WAITING_N)
        compute_until_cancelled(computation);
    else if (!shuf__backend_is_small(backend->ops, &computation->request))
        call_device(0);
    if (faults->permute_fails)
        return shuf__fail(error, SHUF_DEVICE, "permute: the device is on fire");
    return shuf__cpu_ops.launch(cpu_of(backend), computation, block, error);
}

static shuf_status device_write(struct shuf__backend *backend, struct shuf__block *block,
                                uint64_t offset, uint64_t bytes, const void *in,
                                struct shuf__error *error)
{
    while (faults->hangs)
        pause();
    return shuf__cpu_ops.write(cpu_of(backend), block, offset, bytes, in, error);
}

static shuf_status device_wait(struct shuf__backend *backend, uint64_t timeout_ns, bool *done,
                               uint64_t *device_ns, struct shuf__error *error)
{
    (void)backend;
    usleep(faults->wait_us);
    return shuf__cpu_ops.wait(cpu_of(backend), timeout_ns, done, device_ns, error);
}

static shuf_status device_fingerprint(struct shuf__backend *backend,
                                      const struct shuf__block *block, unsigned width,
                                      uint64_t values, uint64_t index, uint64_t *fingerprint,
                                      struct shuf__error *error)
{
    struct shuf__block copy = host_visible(block);
    (void)backend;
    return shuf__cpu_ops.fingerprint(cpu_of(backend), &copy, width, values, index, fingerprint,
                                     error);
}

static shuf_status device_read(struct shuf__backend *backend, const struct shuf__block *block,
                               uint64_t offset, uint64_t bytes, void *out,
                               struct shuf__error *error)
{
    struct shuf__block copy = host_visible(block);
    (void)backend;
    usleep(faults->read_us);
    if (faults->read_fails_from && offset >= faults->read_fails_from && bytes > 64)
        return shuf__fail(error, SHUF_DEVICE, "read: the device is on fire");
    return shuf__cpu_ops.read(cpu_of(backend), &copy, offset, bytes, out, error);
}

static shuf_status device_event(struct shuf__backend *backend, struct shuf__block *block,
                                uint8_t handle[SHUF__IPC_HANDLE], struct shuf__error *error)
{
    (void)backend;
    (void)block;
    (void)error;
    memset(handle, 1, SHUF__IPC_HANDLE);
    return SHUF_OK;
}

static const struct shuf__backend_ops device_ops = {
    .name = "fake",
    .makes = {true, true, true, true, true}, /* every kind */
    .close = device_close,
    .memory = device_memory,
    .alloc = device_alloc,
    .free = device_free,
    .export_block = device_export,
    .mapped = device_mapped,
    .committed = device_committed,
    .workspace = device_workspace,
    .launch = device_launch,
    .wait = device_wait,
    .write = device_write,
    .event = device_event,
    .fingerprint = device_fingerprint,
    .read = device_read,
    .look_up = device_look_up,
};

/* Replaces kernels/backends.c, which this test does not link. */
shuf_status shuf__backend_open(const char *spec, unsigned threads, struct shuf__backend **backend,
                               struct shuf__error *error)
{
    if (strcmp(spec, "cpu") == 0) /* the host's engine beside a GPU */
        return shuf__cpu_ops.open(NULL, threads, backend, error);
    if (strcmp(spec, "none") == 0)
        return shuf__fail(error, SHUF_DEVICE, "backend none: no such device");
    while (faults->open_hangs)
        pause();
    struct fake *fake = calloc(1, sizeof *fake);
    if (!fake)
        return shuf__fail(error, SHUF_NO_MEMORY, "backend fake: out of memory");
    fake->ops = device_ops;
    fake->ops.rank_index_limits = faults->is_gpu ? shuf__cpu_ops.rank_index_limits : NULL;
    fake->ops.small = faults->is_gpu ? SMALL : 0;
    fake->ops.own = faults->is_gpu ? SHUF__MEMORY_CUDA_FD : SHUF__MEMORY_MEMFD;
    fake->base.ops = &fake->ops;
    snprintf(fake->base.device, sizeof fake->base.device, "a fake device");
    *backend = &fake->base;
    seen->opened++;
    return shuf__cpu_ops.open(NULL, threads, &fake->cpu, error);
}

shuf_status shuf__backend_check(const char *spec, struct shuf__error *error)
{
    (void)spec;
    (void)error;
    return SHUF_OK;
}

/* ---- The server process ---- */

static void set_config(struct shuf__config *config, const char *name, const char *value)
{
    struct shuf__error error;
    if (shuf__config_set(config, name, value, &error) == SHUF_OK)
        return;
    fprintf(stderr, "%s\n", error.text);
    _exit(EX_SOFTWARE);
}

static _Noreturn void serve(const struct harness *h, const char *backend,
                            const char *const *settings)
{
    struct shuf__config config;
    struct shuf__log log;
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a failed test leaves no server behind */
    shuf__config_init(&config);
    shuf__log_init(&log, SHUF__LOG_WARNING);
    if (!freopen(h->log, "ae", stderr))
        _exit(EX_SOFTWARE);
    snprintf(config.root, sizeof config.root, "%s", *faults->root ? faults->root : h->directory);
    set_config(&config, "socket", h->socket);
    set_config(&config, "backend", backend);
    for (; *settings; settings += 2)
        set_config(&config, settings[0], settings[1]);
    log.level = (enum shuf__log_level)config.log_level;
    signal(SIGPIPE, SIG_IGN);
    _exit(shuf__server_run(&config, &log));
}

static void fork_server(struct harness *h, const char *backend, const char *const *settings)
{
    assert_true(harness_prepare(h, backend, NULL));
    fflush(NULL);
    h->pid = fork();
    assert_true(h->pid >= 0);
    if (h->pid == 0)
        serve(h, backend, settings);
}

void fake_backend_start(struct harness *h, const char *const *settings)
{
    int fd;
    fork_server(h, "fake", settings);
    for (int waited = 0; (fd = harness_connect(h->socket)) < 0; waited += 5) {
        assert_true(waited < HARNESS_WAIT_MS);
        usleep(5000);
    }
    close(fd);
}

int fake_backend_start_without_device(struct harness *h)
{
    static const char *const none[] = {NULL};
    fork_server(h, "none", none);
    return harness_kill(h, 0);
}

int fake_backend_reset(void **state)
{
    static struct {
        struct faults faults;
        struct seen seen;
    } * shared;
    (void)state;
    if (!shared)
        shared =
            mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return -1;
    memset(shared, 0, sizeof *shared);
    faults = &shared->faults;
    seen = &shared->seen;
    return 0;
}
