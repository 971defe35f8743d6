/* SPDX-License-Identifier: MIT
 *
 * See cuda.h. The prototypes and constants are those of CUDA's cuda.h.
 */
#include "cuda.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Tests find the function by its name with dlsym(), like the functions of a real libcuda. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define EXPORT __attribute__((visibility("default")))

enum { SUCCESS = 0, INVALID_VALUE = 1, NOT_FOUND = 500, UNKNOWN = 999, MAPPINGS = 200 };

static struct fake_cuda fake = {.primary = {{0}, {1}}};

static struct mapping {
    uint8_t *address;
    size_t size;
    int fd; /* -1: not mapped */
    int readable, writable;
} mappings[MAPPINGS];

EXPORT struct fake_cuda *fake_cuda(void)
{
    return &fake;
}

#define MAY_FAIL(name)                               \
    do {                                             \
        if (fake.fails && !strcmp(fake.fails, name)) \
            return UNKNOWN;                          \
    } while (0)

static struct fake_context *current_context(void)
{
    return fake.depth > 0 ? fake.stack[fake.depth - 1] : NULL;
}

/* ---- Devices and contexts ---- */

EXPORT int cuInit(unsigned flags)
{
    MAY_FAIL("cuInit");
    return flags == 0 ? SUCCESS : INVALID_VALUE;
}

EXPORT int cuGetErrorString(int result, const char **text)
{
    *text = result == UNKNOWN ? "the fake fails" : "something else failed";
    return SUCCESS;
}

EXPORT int cuDeviceGetCount(int *count)
{
    MAY_FAIL("cuDeviceGetCount");
    *count = FAKE_GPUS;
    return SUCCESS;
}

EXPORT int cuDeviceGet(int *device, int ordinal)
{
    MAY_FAIL("cuDeviceGet");
    *device = 40 + ordinal; /* a CUdevice is not an ordinal */
    return ordinal < FAKE_GPUS ? SUCCESS : INVALID_VALUE;
}

EXPORT int cuDeviceGetUuid_v2(uint8_t uuid[16], int device)
{
    MAY_FAIL("cuDeviceGetUuid");
    for (int i = 0; i < 16; i++)
        uuid[i] = (uint8_t)((device - 40) * 16 + i);
    return SUCCESS;
}

EXPORT int cuCtxGetCurrent(void **context)
{
    MAY_FAIL("cuCtxGetCurrent");
    *context = current_context();
    return SUCCESS;
}

EXPORT int cuCtxGetDevice(int *device)
{
    MAY_FAIL("cuCtxGetDevice");
    if (!current_context())
        return INVALID_VALUE;
    *device = 40 + current_context()->gpu;
    return SUCCESS;
}

EXPORT int cuCtxPushCurrent_v2(void *context)
{
    MAY_FAIL("cuCtxPushCurrent");
    fake.stack[fake.depth++] = context;
    return SUCCESS;
}

EXPORT int cuCtxPopCurrent_v2(void **context)
{
    *context = fake.stack[--fake.depth];
    return SUCCESS;
}

EXPORT int cuDevicePrimaryCtxRetain(void **context, int device)
{
    MAY_FAIL("cuDevicePrimaryCtxRetain");
    fake.primaries[device - 40]++;
    *context = &fake.primary[device - 40];
    return SUCCESS;
}

EXPORT int cuDevicePrimaryCtxRelease_v2(int device)
{
    fake.primaries[device - 40]--;
    return SUCCESS;
}

/* ---- Memory by descriptors ---- */

static struct mapping *find_mapping(uint64_t address, size_t size)
{
    for (int i = 0; i < MAPPINGS; i++) {
        struct mapping *m = &mappings[i];
        if (m->address && address >= (uintptr_t)m->address && size <= m->size &&
            address - (uintptr_t)m->address <= m->size - size)
            return m;
    }
    return NULL;
}

EXPORT int cuMemImportFromShareableHandle(unsigned long long *allocation, void *handle, int type)
{
    MAY_FAIL("cuMemImportFromShareableHandle");
    int fd = fcntl((int)(uintptr_t)handle, F_DUPFD_CLOEXEC, 3);
    if (!current_context() || type != 1 || fd < 0)
        return INVALID_VALUE;
    fake.allocations++;
    *allocation = (unsigned long long)fd;
    return SUCCESS;
}

EXPORT int cuMemAddressReserve(unsigned long long *address, size_t size, size_t alignment,
                               unsigned long long at, unsigned long long flags)
{
    struct mapping *m = mappings;
    MAY_FAIL("cuMemAddressReserve");
    while (m->address && m < mappings + MAPPINGS - 1)
        m++;
    if (m->address || alignment != 0 || at != 0 || flags != 0)
        return INVALID_VALUE;
    m->address = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    m->size = size;
    m->fd = -1;
    fake.reserved++;
    *address = (uintptr_t)m->address;
    return SUCCESS;
}

EXPORT int cuMemMap(unsigned long long address, size_t size, size_t offset,
                    unsigned long long allocation, unsigned long long flags)
{
    struct mapping *m = find_mapping(address, size);
    MAY_FAIL("cuMemMap");
    if (!m || m->size != size || m->fd >= 0 || offset != 0 || flags != 0)
        return INVALID_VALUE;
    m->fd = fcntl((int)allocation, F_DUPFD_CLOEXEC, 3);
    m->readable = m->writable = 0;
    fake.mapped++;
    return SUCCESS;
}

struct access {
    int type, id, flags;
};

EXPORT int cuMemSetAccess(unsigned long long address, size_t size, const struct access *access,
                          size_t count)
{
    struct mapping *m = find_mapping(address, size);
    MAY_FAIL("cuMemSetAccess");
    const int protection = access->flags == 3 ? PROT_READ | PROT_WRITE : PROT_READ;
    if (!m || m->fd < 0 || count != 1 || access->type != 1 ||
        (access->flags != 1 && access->flags != 3) || !current_context() ||
        access->id != 40 + current_context()->gpu ||
        mmap(m->address, size, protection, MAP_SHARED | MAP_FIXED, m->fd, 0) == MAP_FAILED)
        return INVALID_VALUE;
    m->readable = 1;
    m->writable = access->flags == 3;
    return SUCCESS;
}

EXPORT int cuMemUnmap(unsigned long long address, size_t size)
{
    struct mapping *m = find_mapping(address, size);
    if (!m || m->fd < 0)
        return INVALID_VALUE;
    close(m->fd);
    m->fd = -1;
    fake.mapped--;
    return SUCCESS;
}

EXPORT int cuMemAddressFree(unsigned long long address, size_t size)
{
    struct mapping *m = find_mapping(address, size);
    if (!m || m->fd >= 0)
        return INVALID_VALUE;
    munmap(m->address, m->size);
    m->address = NULL;
    fake.reserved--;
    return SUCCESS;
}

EXPORT int cuMemRelease(unsigned long long allocation)
{
    close((int)allocation);
    fake.allocations--;
    return SUCCESS;
}

/* ---- Memory and events by handles ---- */

struct ipc_handle {
    void *pointer;
    char rest[56];
};

static struct fake_memory *opened[MAPPINGS];

EXPORT int cuIpcOpenMemHandle_v2(unsigned long long *address, struct ipc_handle handle,
                                 unsigned flags)
{
    struct fake_memory *memory = handle.pointer;
    MAY_FAIL("cuIpcOpenMemHandle");
    if (!current_context() || flags != 1 || memory->opened_in)
        return INVALID_VALUE;
    for (int i = 0; i < MAPPINGS; i++)
        if (!opened[i]) {
            opened[i] = memory;
            break;
        }
    memory->opened_in = current_context();
    fake.opened++;
    *address = (uintptr_t)memory->bytes;
    return SUCCESS;
}

static struct fake_memory *find_opened(uint64_t address, size_t size)
{
    for (int i = 0; i < MAPPINGS; i++)
        if (opened[i] && address >= (uintptr_t)opened[i]->bytes &&
            address + size <= (uintptr_t)opened[i]->bytes + opened[i]->size)
            return opened[i];
    return NULL;
}

EXPORT int cuIpcCloseMemHandle(unsigned long long address)
{
    for (int i = 0; i < MAPPINGS; i++) {
        if (!opened[i] || (uintptr_t)opened[i]->bytes != address ||
            opened[i]->opened_in != current_context())
            continue;
        opened[i]->opened_in = NULL;
        opened[i] = NULL;
        fake.opened--;
        return SUCCESS;
    }
    return INVALID_VALUE;
}

EXPORT int cuIpcOpenEventHandle(void **event, struct ipc_handle handle)
{
    MAY_FAIL("cuIpcOpenEventHandle");
    fake.events++;
    *event = handle.pointer;
    return current_context() ? SUCCESS : INVALID_VALUE;
}

EXPORT int cuEventSynchronize(void *event)
{
    MAY_FAIL("cuEventSynchronize");
    ((struct fake_event *)event)->waits++;
    return SUCCESS;
}

EXPORT int cuEventDestroy_v2(void *event)
{
    (void)event;
    fake.events--;
    return SUCCESS;
}

EXPORT int cuMemcpyDtoH_v2(void *out, unsigned long long address, size_t size)
{
    struct mapping *m = find_mapping(address, size);
    struct fake_memory *memory = find_opened(address, size);
    MAY_FAIL("cuMemcpyDtoH");
    if (!current_context() ||
        !((m && m->readable) || (memory && memory->opened_in == current_context())))
        return INVALID_VALUE;
    memcpy(out, (const void *)(uintptr_t)address, size);
    return SUCCESS;
}

EXPORT int cuMemcpyHtoD_v2(unsigned long long address, const void *in, size_t size)
{
    struct mapping *m = find_mapping(address, size);
    struct fake_memory *memory = find_opened(address, size);
    MAY_FAIL("cuMemcpyHtoD");
    if (!current_context() ||
        !((m && m->writable) || (memory && memory->opened_in == current_context())))
        return INVALID_VALUE;
    memcpy((void *)(uintptr_t)address, in, size);
    return SUCCESS;
}

EXPORT int cuStreamSynchronize(void *stream)
{
    return current_context() && !stream ? SUCCESS : INVALID_VALUE;
}
