/* SPDX-License-Identifier: MIT
 *
 * The CPU backend: all cores by OpenMP, the best instruction set at run time,
 * results in the host's memory.
 */
#include "backend.h"
#include "memory.h"
#include "permute.h"

#include <inttypes.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

extern const struct shuf__lanes shuf__lanes_scalar;

static bool always(void)
{
    return true;
}

#ifdef SHUF_LANES_X86
extern const struct shuf__lanes shuf__lanes_avx2, shuf__lanes_avx512;

static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2");
}

static bool has_avx512(void)
{
    return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("bmi2");
}
#endif

/* Best first. */
static const struct {
    const struct shuf__lanes *lanes;
    bool (*runs_here)(void);
} variants[] = {
#ifdef SHUF_LANES_X86
    {&shuf__lanes_avx512, has_avx512},
    {&shuf__lanes_avx2, has_avx2},
#endif
    {&shuf__lanes_scalar, always},
};

struct cpu {
    struct shuf__backend base;
    const struct shuf__lanes *lanes;
    int threads;
};

static struct cpu *cpu_of(struct shuf__backend *backend)
{
    return (struct cpu *)backend;
}

static shuf_status choose_lanes(const char *name, const struct shuf__lanes **lanes,
                                struct shuf__error *error)
{
    for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++) {
        bool named = name && strcmp(name, variants[i].lanes->name) == 0;
        if ((named || !name) && variants[i].runs_here()) {
            *lanes = variants[i].lanes;
            return SHUF_OK;
        }
        if (named)
            return shuf__fail(error, SHUF_DEVICE, "backend cpu:%s: this processor has no %s", name,
                              name);
    }
    return shuf__fail(error, SHUF_INVALID,
                      "backend cpu:%.64s: expected scalar, avx2 or avx512 (x86-64 only)", name);
}

/* "model name : AMD EPYC" of /proc/cpuinfo, where there is such a line. */
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

static shuf_status cpu_open(const char *device, unsigned threads, struct shuf__backend **backend,
                            struct shuf__error *error)
{
    const struct shuf__lanes *lanes = NULL;
    if (choose_lanes(device, &lanes, error))
        return error->status;
    struct cpu *cpu = calloc(1, sizeof *cpu);
    if (!cpu)
        return shuf__fail(error, SHUF_NO_MEMORY, "backend cpu: out of memory");
    char model[96];
    read_model(model, sizeof model);
    cpu->base.ops = &shuf__cpu_ops;
    cpu->lanes = lanes;
    cpu->threads = threads ? (int)threads : omp_get_max_threads();
    snprintf(cpu->base.device, sizeof cpu->base.device, "%s, %d thread%s", model, cpu->threads,
             cpu->threads == 1 ? "" : "s");
    snprintf(cpu->base.device_id, sizeof cpu->base.device_id, "%s", lanes->name);
    *backend = &cpu->base;
    return SHUF_OK;
}

static void cpu_close(struct shuf__backend *backend)
{
    free(backend);
}

static shuf_status cpu_memory(struct shuf__backend *backend, uint64_t *available, uint64_t *total,
                              struct shuf__error *error)
{
    (void)backend;
    return shuf__cpu_memory(available, total, error);
}

/* Asks what is there first: with overcommit the mapping itself would succeed,
 * and the kernel would kill the daemon later. */
static shuf_status cpu_alloc(struct shuf__backend *backend, uint64_t bytes,
                             struct shuf__block *block, struct shuf__error *error)
{
    uint64_t available, total;
    *block = (struct shuf__block){0};
    if (bytes == 0)
        return SHUF_OK;
    if (cpu_memory(backend, &available, &total, error))
        return error->status;
    void *memory = MAP_FAILED;
    if (bytes <= available)
        memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return shuf__fail(error, SHUF_NO_MEMORY,
                          "result of %" PRIu64 " bytes: %" PRIu64 " bytes of memory are available",
                          bytes, available);
    madvise(memory, bytes, MADV_HUGEPAGE); /* only a hint: fewer page faults */
    *block = (struct shuf__block){.memory = memory, .bytes = bytes, .host = memory};
    return SHUF_OK;
}

static void cpu_free(struct shuf__backend *backend, struct shuf__block *block)
{
    (void)backend;
    if (block->memory)
        munmap(block->memory, block->bytes);
    *block = (struct shuf__block){0};
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static shuf_status cpu_permute(struct shuf__backend *backend, const struct shuf__job *job,
                               struct shuf__block *block, uint64_t *device_ns,
                               struct shuf__error *error)
{
    struct cpu *cpu = cpu_of(backend);
    uint64_t start = now_ns();
    if (!shuf__cpu_permute(cpu->lanes, cpu->threads, job, block->memory))
        return shuf__fail(error, SHUF_CANCELLED, "permute: cancelled");
    *device_ns = now_ns() - start;
    return SHUF_OK;
}

static shuf_status cpu_fingerprint(struct shuf__backend *backend, const struct shuf__block *block,
                                   unsigned width, uint64_t values, uint64_t *fingerprint,
                                   struct shuf__error *error)
{
    enum { PART = 1 << 16 };
    const struct shuf__lanes *lanes = cpu_of(backend)->lanes;
    uint64_t parts = (values + PART - 1) / PART, sum = 0;
    (void)error;
#pragma omp parallel for num_threads(cpu_of(backend)->threads) reduction(+ : sum)
    for (uint64_t part = 0; part < parts; part++) {
        uint64_t first = part * PART;
        size_t count = values - first < PART ? values - first : PART;
        if (width == 4)
            sum += lanes->fingerprint_narrow((const uint32_t *)block->host + first, count, first);
        else
            sum += lanes->fingerprint_wide((const uint64_t *)block->host + first, count, first);
    }
    *fingerprint = sum;
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

const struct shuf__backend_ops shuf__cpu_ops = {
    .name = "cpu",
    .open = cpu_open,
    .close = cpu_close,
    .memory = cpu_memory,
    .alloc = cpu_alloc,
    .free = cpu_free,
    .permute = cpu_permute,
    .fingerprint = cpu_fingerprint,
    .read = cpu_read,
};
