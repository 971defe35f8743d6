/* SPDX-License-Identifier: MIT
 *
 * See host.h.
 */
#include "host/host.h"

#include "dtype.h"
#include "host/memfd.h"
#include "host/memory_limits.h"
#include "shuf/half.h"

#include <errno.h>
#include <inttypes.h>
#include <omp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* ---- Threads ---- */

/* omp_get_max_threads() would obey OMP_NUM_THREADS, which launchers such as torchrun set to 1 for
 * their ranks. */
int shuf__host_threads(unsigned requested)
{
    return requested ? (int)requested : omp_get_num_procs();
}

/* The thread lives until the gate opens, so that all threads exist at the same time. */
static void *pass(void *gate)
{
    pthread_mutex_lock(gate);
    pthread_mutex_unlock(gate);
    return NULL;
}

/* Starts and ends threads. Returns 0, or an error number. */
static int start_and_end(size_t count)
{
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    pthread_t *threads = malloc(count * sizeof *threads);
    size_t started = 0;
    int result = threads ? 0 : ENOMEM;
    pthread_mutex_lock(&gate);
    while (result == 0 && started < count) {
        result = pthread_create(&threads[started], NULL, pass, &gate);
        started += result == 0;
    }
    pthread_mutex_unlock(&gate);
    while (started > 0)
        pthread_join(threads[--started], NULL);
    free(threads);
    return result;
}

shuf_status shuf__threads_start(int threads, int later, struct shuf__error *error)
{
    const int more = threads - 1 + later, result = start_and_end((size_t)more);
    if (result)
        return shuf__fail(error, SHUF_IO,
                          "threads %d: %d more threads cannot be started: %s; raise the limits of "
                          "processes (ulimit -u, pids.max, TasksMax= of the unit) and of memory "
                          "(ulimit -v), or lower threads",
                          threads, more, strerror(result));
#pragma omp parallel num_threads(threads)
    {
        __asm__ volatile(""); /* GCC omits an empty region, and then starts no threads */
    }
    return SHUF_OK;
}

/* ---- Blocks ---- */

/* The block is never lent. Asks for huge pages, because a computation uses thousands of scattered
 * places of a workspace. */
static shuf_status alloc_private(uint64_t bytes, struct shuf__block *block,
                                 struct shuf__error *error)
{
    if (bytes == 0)
        return SHUF_OK;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return shuf__fail(error, SHUF_NO_MEMORY, "%" PRIu64 " bytes to compute in: %s", bytes,
                          strerror(errno));
    madvise(memory, bytes, MADV_HUGEPAGE);
    block->memory = memory;
    block->host = memory;
    block->bytes = bytes;
    return SHUF_OK;
}

shuf_status shuf__host_alloc(enum shuf__memory kind, uint64_t bytes, struct shuf__block *block,
                             struct shuf__error *error)
{
    uint64_t available = 0, total;
    *block = (struct shuf__block){.kind = kind, .fd = -1};
    if (bytes && shuf__host_memory(&available, &total, error))
        return error->status;
    if (bytes > available)
        return shuf__fail(error, SHUF_NO_MEMORY,
                          "result of %" PRIu64 " bytes: %" PRIu64 " bytes of memory are available",
                          bytes, available);
    const bool is_private = kind == SHUF__MEMORY_PRIVATE || *shuf__memfd_fault();
    return is_private ? alloc_private(bytes, block, error) : shuf__memfd_alloc(bytes, block, error);
}

/* Checks the free memory first. Without this check memfd_create would succeed, and the kernel might
 * kill the process that fills the buffer. */
shuf_status shuf__backend_alloc_writable(struct shuf__backend *backend, enum shuf__memory kind,
                                         uint64_t bytes, struct shuf__block *block,
                                         struct shuf__error *error)
{
    uint64_t available, total;
    if (kind != SHUF__MEMORY_MEMFD)
        return backend->ops->alloc(backend, kind, bytes, block, error);
    if (backend->ops->memory(backend, kind, &available, &total, error))
        return error->status;
    if (bytes > available)
        return shuf__fail(error, SHUF_NO_MEMORY,
                          "buffer of %" PRIu64 " bytes: %" PRIu64 " bytes of memory are available",
                          bytes, available);
    if (!*shuf__memfd_fault())
        return shuf__memfd_alloc_writable(bytes, block, error);
    *block = (struct shuf__block){.kind = kind, .fd = -1};
    return alloc_private(bytes, block, error);
}

int shuf__host_export(const struct shuf__block *block)
{
    return shuf__memfd_share(block);
}

enum shuf__mapped shuf__host_mapped(const struct shuf__block *block)
{
    if (block->kind != SHUF__MEMORY_MEMFD || !shuf__memfd_knows_mappings())
        return SHUF__MAPPED_UNKNOWN;
    return shuf__memfd_is_unmapped(block) ? SHUF__UNMAPPED : SHUF__MAPPED;
}

uint64_t shuf__host_committed(const struct shuf__block *block)
{
    return block->kind == SHUF__MEMORY_MEMFD ? shuf__memfd_committed(block) : block->bytes;
}

void shuf__host_free(struct shuf__block *block)
{
    if (block->kind == SHUF__MEMORY_MEMFD) {
        shuf__memfd_free(block);
        return;
    }
    if (block->memory)
        munmap(block->memory, block->bytes);
    *block = (struct shuf__block){.kind = SHUF__MEMORY_PRIVATE, .fd = -1};
}

/* ---- Their contents ---- */

void shuf__host_copy(int threads, void *to, const void *from, size_t bytes)
{
    enum { PART = 256 << 10 };
    size_t parts = (bytes + PART - 1) / PART;
    if (parts <= 1) {
        memcpy(to, from, bytes);
        return;
    }
#pragma omp parallel for num_threads(threads)
    for (size_t part = 0; part < parts; part++) {
        size_t first = part * PART, size = bytes - first < PART ? bytes - first : PART;
        memcpy((char *)to + first, (const char *)from + first, size);
    }
}

static uint64_t part_of_fingerprint(const struct shuf__simd_ops *simd, const void *values,
                                    unsigned width, uint64_t first, size_t count, uint64_t index)
{
    if (width == 2)
        return simd->fingerprint_half((const uint16_t *)values + first, count, index + first);
    if (width == 4)
        return simd->fingerprint_narrow((const uint32_t *)values + first, count, index + first);
    return simd->fingerprint_wide((const uint64_t *)values + first, count, index + first);
}

/* If there is only one part, this thread computes it, because waking other threads would take
 * longer. */
uint64_t shuf__host_fingerprint(const struct shuf__simd_ops *simd, int threads, const void *values,
                                unsigned width, uint64_t count, uint64_t index)
{
    enum { PART = 1 << 16 };
    uint64_t parts = (count + PART - 1) / PART, sum = 0;
    if (parts <= 1)
        return part_of_fingerprint(simd, values, width, 0, count, index);
#pragma omp parallel for num_threads(threads) reduction(+ : sum)
    for (uint64_t part = 0; part < parts; part++) {
        uint64_t first = part * PART;
        size_t size = count - first < PART ? count - first : PART;
        sum += part_of_fingerprint(simd, values, width, first, size, index);
    }
    return sum;
}

/* Threads sum parts of a fixed size. One thread then adds these sums in order. */
enum { SUMMED = 1 << 14, BATCH = 256 }; /* values of a part; parts that are summed at a time */

static double value_at(const void *values, shuf_dtype dtype, size_t i)
{
    switch (dtype) {
    case SHUF_U32:
        return ((const uint32_t *)values)[i];
    case SHUF_U64:
        return (double)((const uint64_t *)values)[i];
    case SHUF_F64:
        return ((const double *)values)[i];
    case SHUF_F32:
        return ((const float *)values)[i];
    case SHUF_F16:
        return shuf_of_f16(((const uint16_t *)values)[i]);
    case SHUF_BF16:
        return shuf_of_bf16(((const uint16_t *)values)[i]);
    default:
        return 0; /* streams do not have this type */
    }
}

static struct shuf__sums sums_of(const void *values, shuf_dtype dtype, size_t count, double centre,
                                 double scale)
{
    const double x0 = value_at(values, dtype, 0);
    struct shuf__sums s = {.least = x0, .largest = x0};
    for (size_t i = 0; i < count; i++) {
        const double x = value_at(values, dtype, i), z = (x - centre) * scale, square = z * z;
        s.power[0] += z;
        s.power[1] += square;
        s.power[2] += square * z;
        s.power[3] += square * square;
        s.least = x < s.least ? x : s.least;
        s.largest = x > s.largest ? x : s.largest;
    }
    return s;
}

static struct shuf__sums sums_of_part(const void *values, shuf_dtype dtype, uint64_t count,
                                      uint64_t part, double centre, double scale)
{
    const uint64_t first = part * SUMMED;
    const size_t size = count - first < SUMMED ? count - first : SUMMED;
    return sums_of((const char *)values + first * shuf__dtype_bytes((int)dtype), dtype, size,
                   centre, scale);
}

void shuf__host_sums(int threads, const void *values, shuf_dtype dtype, uint64_t count,
                     double centre, double scale, struct shuf__sums *sums)
{
    struct shuf__sums of[BATCH];
    const uint64_t parts = (count + SUMMED - 1) / SUMMED;
    for (uint64_t at = 0; at < parts; at += BATCH) {
        const int batch = parts - at < BATCH ? (int)(parts - at) : BATCH;
#pragma omp parallel for num_threads(threads) if (batch > 1)
        for (int i = 0; i < batch; i++)
            of[i] = sums_of_part(values, dtype, count, at + (uint64_t)i, centre, scale);
        if (at == 0)
            *sums = of[0];
        for (int i = at == 0; i < batch; i++)
            shuf__sums_add(sums, &of[i]);
    }
}
