/* SPDX-License-Identifier: MIT
 *
 * The CPU backend. It computes on all cores by OpenMP, and uses the best instruction set of the
 * processor. Results are in host memory, in sealed memfds (memfd.h).
 */
#include "cpu.h"

#include "host/cancelled.h"
#include "host/exchange.h"
#include "host/host.h"
#include "host/memory_limits.h"
#include "host/permute.h"
#include "host/shuffle.h"
#include "rank_index.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- Streams: the threads share superblocks of 1024 values ---- */

enum { BATCH = 16 }; /* superblocks that a thread takes at a time */

/* The state of one computation, which its threads share. */
struct run {
    const struct shuf__computation *computation;
    const struct shuf__stream *stream; /* of the computation */
    unsigned width;                    /* bytes of a value */
    shuf__draw *draw;
    union shuf__source source;
    char *out;
    uint64_t super, end; /* superblocks: the first of the computation, and the one after the last */
    atomic_uint_fast64_t next;
    atomic_bool cancelled;
};

/* The first and the last superblock may have values that are not requested. They are computed in a
 * buffer. */
static void draw_part(const struct run *run, uint64_t super, uint64_t from, uint64_t to)
{
    const struct shuf__stream *s = run->stream;
    uint64_t whole[SHUF__SUPER];
    run->draw(&run->source, super, whole);
    memcpy(run->out + (from - s->offset) * run->width,
           (const char *)whole + from % SHUF__SUPER * run->width, (to - from) * run->width);
}

static void draw_super(const struct run *run, uint64_t super)
{
    const struct shuf__stream *s = run->stream;
    const uint64_t from = super * SHUF__SUPER, to = from + SHUF__SUPER;
    const uint64_t end = s->offset + s->count;
    if (from >= s->offset && to <= end)
        run->draw(&run->source, super, run->out + (from - s->offset) * run->width);
    else
        draw_part(run, super, from < s->offset ? s->offset : from, to < end ? to : end);
}

static void run_thread(struct run *run)
{
    for (;;) {
        uint64_t super = atomic_fetch_add(&run->next, BATCH);
        if (shuf__is_cancelled(run->computation, &run->cancelled) || super >= run->end)
            return;
        for (int i = 0; i < BATCH && super < run->end; i++, super++)
            draw_super(run, super);
    }
}

static void make_source(const struct shuf__stream *s, union shuf__source *source)
{
    const shuf_key key = shuf__stream_key(s);
    switch (s->distribution) {
#define X(NAME, name, type, value) \
    case SHUF_DISTRIBUTION_##NAME: \
        source->name = value;      \
        break;
        SHUF__SOURCES(X)
#undef X
    default:
        assert(false);
    }
}

/* The stream has at least one value. */
static void begin_stream(struct run *run, const struct shuf__simd_ops *simd)
{
    const shuf_dtype dtype = run->computation->request.dtype;
    const struct shuf__stream *s = run->stream = &run->computation->request.stream;
    run->width = shuf__dtype_bytes((int)dtype);
    run->draw = simd->stream(s->distribution, dtype);
    assert(run->draw);
    make_source(s, &run->source);
    run->super = s->offset / SHUF__SUPER;
    run->end = (s->offset + s->count - 1) / SHUF__SUPER + 1;
    atomic_init(&run->next, run->super);
    atomic_init(&run->cancelled, false);
}

/* With `threads` = 1 only the caller's thread works. Returns false if cancelled. */
static bool draw_stream(const struct shuf__simd_ops *simd, int threads,
                        const struct shuf__computation *computation, void *out)
{
    struct run run = {.computation = computation, .out = out};
    if (computation->request.stream.count == 0)
        return true;
    begin_stream(&run, simd);
    if (threads == 1 || run.end - run.super <= BATCH) {
        run_thread(&run);
    } else {
#pragma omp parallel num_threads(threads)
        run_thread(&run);
    }
    return !atomic_load(&run.cancelled);
}

/* ---- Sums of streams: no value is stored ---- */

static void add_pass(struct shuf__pass *pass, const struct shuf__pass *more, bool is_first)
{
    pass->fingerprint += more->fingerprint;
    if (is_first)
        pass->sums = more->sums;
    else
        shuf__sums_add(&pass->sums, &more->sums);
}

/* Adds the requested values of a superblock to the sums. */
static void sum_super(const struct run *run, const struct shuf__simd_ops *simd, uint64_t super,
                      struct shuf__pass *pass, bool is_first)
{
    uint64_t whole[SHUF__SUPER];
    const struct shuf__stream *s = run->stream;
    const uint64_t from = super == run->super ? s->offset : super * SHUF__SUPER;
    const uint64_t end = s->offset + s->count, last = (super + 1) * SHUF__SUPER;
    const uint64_t count = (last < end ? last : end) - from;
    const void *values = (const char *)whole + from % SHUF__SUPER * run->width;
    run->draw(&run->source, super, whole);
    struct shuf__pass more = {.fingerprint =
                                  shuf__host_fingerprint(simd, 1, values, run->width, count,
                                                         pass->index + (from - s->offset))};
    if (pass->moments)
        shuf__host_sums(1, values, run->computation->request.dtype, count, pass->centre,
                        pass->scale, &more.sums);
    add_pass(pass, &more, is_first);
}

/* The superblocks from `first` to the one before `end`. */
static void sum_part(struct run *run, const struct shuf__simd_ops *simd, uint64_t first,
                     uint64_t end, struct shuf__pass *pass)
{
    for (uint64_t super = first; super < end; super++) {
        if ((super - first) % BATCH == 0 && shuf__is_cancelled(run->computation, &run->cancelled))
            return;
        sum_super(run, simd, super, pass, super == first);
    }
}

enum { PARTS = 512 };

/* `sums`: those of the parts. They are added in order, so the number of threads does not change the
 * bits. The threads meet only at the end. Returns false if cancelled. */
static bool sum_stream(const struct shuf__simd_ops *simd, int threads,
                       const struct shuf__computation *computation, struct shuf__pass sums[PARTS],
                       struct shuf__pass *pass)
{
    struct run run = {.computation = computation};
    begin_stream(&run, simd);
    pass->fingerprint = 0;
    const uint64_t supers = run.end - run.super, least = (supers + PARTS - 1) / PARTS;
    const uint64_t part = least < BATCH ? BATCH : least;
    const int parts = (int)((supers + part - 1) / part);
#pragma omp parallel for num_threads(threads) schedule(dynamic) if (parts > 1)
    for (int i = 0; i < parts; i++) {
        const uint64_t first = run.super + (uint64_t)i * part;
        sums[i] = *pass;
        sum_part(&run, simd, first, run.end - first < part ? run.end : first + part, &sums[i]);
    }
    for (int i = 0; i < parts; i++)
        add_pass(pass, &sums[i], i == 0);
    return !atomic_load(&run.cancelled);
}

/* ---- Whole computations ---- */

bool shuf__cpu_compute(const struct shuf__simd_ops *simd, int threads,
                       const struct shuf__computation *computation, void *out)
{
    const int used = shuf__backend_is_quick(&shuf__cpu_ops, &computation->request) ? 1 : threads;
    switch (computation->request.kind) {
    case SHUF__SHUFFLE:
        return shuf__host_shuffle(simd, used, computation, out);
    case SHUF__EXCHANGE:
        return shuf__host_exchange(simd, used, computation, out);
    case SHUF__STREAM:
        return draw_stream(simd, used, computation, out);
    default:
        return shuf__host_permute(simd, used, computation, out);
    }
}

/* ---- The backend ---- */

struct cpu {
    struct shuf__backend base;
    const struct shuf__simd_ops *simd;
    int threads;
    uint64_t device_ns; /* the time that the last launch took */
    /* After a computation, the daemon zeroes only 64 KiB of the stack (keys/keyring.c). This array
     * would move the round keys below them. */
    struct shuf__pass sums[PARTS];
};

static struct cpu *cpu_of(struct shuf__backend *backend)
{
    return (struct cpu *)backend;
}

/* Reads the line "model name : AMD EPYC" of /proc/cpuinfo, if there is one. */
static void read_model(char *name, size_t size)
{
    char line[256];
    snprintf(name, size, "CPU");
    FILE *file = fopen("/proc/cpuinfo", "re");
    while (file && fgets(line, sizeof line, file)) {
        char *value = strncmp(line, "model name", 10) == 0 ? strchr(line, ':') : NULL;
        if (value) {
            value += 1 + strspn(value + 1, " ");
            value[strcspn(value, "\n")] = '\0';
            snprintf(name, size, "%s", value);
            break;
        }
    }
    if (file)
        fclose(file);
}

shuf_status shuf__cpu_check_name(const char *device, struct shuf__error *error)
{
    const struct shuf__simd_ops *ignored;
    return shuf__simd_choose(device, &ignored, error);
}

/* The threads that the daemon starts later: four of libuv, and those of the metrics. libuv ends the
 * process too if it cannot start its threads. */
enum { THREADS_LATER = 8 };

static shuf_status cpu_open(const char *device, unsigned threads, struct shuf__backend **backend,
                            struct shuf__error *error)
{
    const struct shuf__simd_ops *simd = NULL;
    if (shuf__simd_choose(device, &simd, error))
        return error->status;
    if (shuf__threads_start(shuf__host_threads(threads), THREADS_LATER, error))
        return error->status;
    struct cpu *cpu = calloc(1, sizeof *cpu);
    if (!cpu)
        return shuf__fail(error, SHUF_NO_MEMORY, "backend cpu: out of memory");
    char model[96];
    read_model(model, sizeof model);
    cpu->base.ops = &shuf__cpu_ops;
    cpu->simd = simd;
    cpu->threads = shuf__host_threads(threads);
    snprintf(cpu->base.device, sizeof cpu->base.device, "%s, %d thread%s", model, cpu->threads,
             cpu->threads == 1 ? "" : "s");
    snprintf(cpu->base.device_id, sizeof cpu->base.device_id, "%s", simd->name);
    *backend = &cpu->base;
    return SHUF_OK;
}

static void cpu_close(struct shuf__backend *backend)
{
    free(backend);
}

static shuf_status cpu_memory(struct shuf__backend *backend, enum shuf__memory kind,
                              uint64_t *available, uint64_t *total, struct shuf__error *error)
{
    (void)backend;
    (void)kind;
    return shuf__host_memory(available, total, error);
}

static shuf_status cpu_alloc(struct shuf__backend *backend, enum shuf__memory kind, uint64_t bytes,
                             struct shuf__block *block, struct shuf__error *error)
{
    (void)backend;
    assert(shuf__memory_is_host(kind));
    return shuf__host_alloc(kind, bytes, block, error);
}

static void cpu_free(struct shuf__backend *backend, struct shuf__block *block)
{
    (void)backend;
    shuf__host_free(block);
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static struct shuf__workspace cpu_workspace(const struct shuf__backend *backend,
                                            const struct shuf__request *request,
                                            enum shuf__memory kind)
{
    (void)kind;
    return shuf__host_workspace(((const struct cpu *)backend)->threads, request);
}

/* The calling thread does the whole computation here, so cpu_wait() need not wait. */
static shuf_status cpu_launch(struct shuf__backend *backend,
                              const struct shuf__computation *computation,
                              struct shuf__block *block, struct shuf__error *error)
{
    struct cpu *cpu = cpu_of(backend);
    uint64_t start = now_ns();
    if (!shuf__cpu_compute(cpu->simd, cpu->threads, computation, block->memory))
        return shuf__fail(error, SHUF_CANCELLED, "%s: cancelled",
                          shuf__request_name(&computation->request));
    cpu->device_ns = now_ns() - start;
    return SHUF_OK;
}

static shuf_status cpu_wait(struct shuf__backend *backend, uint64_t timeout_ns, bool *done,
                            uint64_t *device_ns, struct shuf__error *error)
{
    (void)timeout_ns;
    (void)error;
    *done = true;
    *device_ns = cpu_of(backend)->device_ns;
    return SHUF_OK;
}

static shuf_status cpu_fingerprint(struct shuf__backend *backend, const struct shuf__block *block,
                                   unsigned width, uint64_t values, uint64_t index,
                                   uint64_t *fingerprint, struct shuf__error *error)
{
    const struct cpu *cpu = cpu_of(backend);
    (void)error;
    *fingerprint =
        shuf__host_fingerprint(cpu->simd, cpu->threads, block->host, width, values, index);
    return SHUF_OK;
}

static bool cpu_passes(const struct shuf__request *request)
{
    const struct shuf__permutation *p = &request->permutation;
    return request->kind == SHUF__STREAM ||
           (request->kind == SHUF__PERMUTATION && p->rows == 1 && !p->window &&
            shuf_algorithm_has_random_access(p->algorithm));
}

static shuf_status cpu_pass(struct shuf__backend *backend,
                            const struct shuf__computation *computation, struct shuf__pass *pass,
                            struct shuf__error *error)
{
    struct cpu *cpu = cpu_of(backend);
    const uint64_t start = now_ns();
    if (computation->request.kind == SHUF__STREAM
            ? !sum_stream(cpu->simd, cpu->threads, computation, cpu->sums, pass)
            : !shuf__host_permute_sum(cpu->simd, cpu->threads, computation, pass->index,
                                      &pass->fingerprint))
        return shuf__fail(error, SHUF_CANCELLED, "%s: cancelled",
                          shuf__request_name(&computation->request));
    pass->device_ns = now_ns() - start;
    return SHUF_OK;
}

static shuf_status cpu_sums(struct shuf__backend *backend, const struct shuf__block *block,
                            shuf_dtype dtype, uint64_t values, double centre, double scale,
                            struct shuf__sums *sums, struct shuf__error *error)
{
    (void)error;
    shuf__host_sums(cpu_of(backend)->threads, block->host, dtype, values, centre, scale, sums);
    return SHUF_OK;
}

static shuf_status cpu_read(struct shuf__backend *backend, const struct shuf__block *block,
                            uint64_t offset, uint64_t bytes, void *out, struct shuf__error *error)
{
    (void)backend;
    (void)error;
    if (bytes)
        memcpy(out, (const char *)block->host + offset, bytes);
    return SHUF_OK;
}

static shuf_status cpu_write(struct shuf__backend *backend, struct shuf__block *block,
                             uint64_t offset, uint64_t bytes, const void *in,
                             struct shuf__error *error)
{
    (void)backend;
    (void)error;
    if (bytes)
        memcpy((char *)block->memory + offset, in, bytes);
    return SHUF_OK;
}

static shuf_status cpu_look_up(struct shuf__backend *backend,
                               const struct shuf__computation *computation, uint64_t *place,
                               size_t count, struct shuf__error *error)
{
    const struct cpu *cpu = cpu_of(backend);
    return shuf__host_look_up(cpu->simd, cpu->threads, computation, place, count, error);
}

/* min_skip: AVX-512 evaluates 16 tiles in less than a millisecond. min_gap: a computation can skip
 * only whole tiles. Two values that are at most a tile apart have no whole tile between them. */
static const struct shuf__rank_index_limits rank_index_limits = {
    .min_skip = 16 * SHUF__RANK_INDEX_TILE,
    .min_gap = SHUF__RANK_INDEX_TILE,
};

const struct shuf__backend_ops shuf__cpu_ops = {
    .name = "cpu",
    .makes = {[SHUF__MEMORY_MEMFD] = true, [SHUF__MEMORY_PRIVATE] = true},
    .own = SHUF__MEMORY_MEMFD,
    .quick = 4096,
    .quick_row = 64,
    .rank_index_limits = &rank_index_limits,
    .open = cpu_open,
    .close = cpu_close,
    .memory = cpu_memory,
    .alloc = cpu_alloc,
    .free = cpu_free,
    .export_block = shuf__host_export,
    .mapped = shuf__host_mapped,
    .committed = shuf__host_committed,
    .workspace = cpu_workspace,
    .launch = cpu_launch,
    .wait = cpu_wait,
    .fingerprint = cpu_fingerprint,
    .passes = cpu_passes,
    .pass = cpu_pass,
    .sums = cpu_sums,
    .read = cpu_read,
    .write = cpu_write,
    .look_up = cpu_look_up,
};
