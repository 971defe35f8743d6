/* SPDX-License-Identifier: MIT
 *
 * See host.h.
 */
#include "host/host.h"

#include "host/memfd.h"
#include "host/memory_limits.h"

#include <errno.h>
#include <inttypes.h>
#include <omp.h>
#include <string.h>
#include <sys/mman.h>

/* omp_get_max_threads() would obey OMP_NUM_THREADS, which launchers such as torchrun set to 1 for
 * their ranks. */
int shuf__host_threads(unsigned requested)
{
    return requested ? (int)requested : omp_get_num_procs();
}

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
