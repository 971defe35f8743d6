/* SPDX-License-Identifier: MIT
 *
 * The functions of CUDA's driver interface that leases need. The first lease of device memory loads
 * them from libcuda.so.1. So programs without device memory need no CUDA, and the build needs no
 * toolkit. The types here replace those of cuda.h, and the versions of the symbols are those in its
 * macros.
 */
#ifndef SHUF__LIBCUDA_H
#define SHUF__LIBCUDA_H

#include "error.h"

#include <stddef.h>
#include <stdint.h>

struct shuf__cuda_ipc { /* CUipcMemHandle, CUipcEventHandle; passed by value */
    char bytes[64];
};

struct shuf__cuda_access { /* CUmemAccessDesc, with its CUmemLocation in it */
    int location_type, location_id;
    int flags;
};

enum {
    SHUF__CUDA_HANDLE_FD = 1,       /* CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR */
    SHUF__CUDA_LOCATION_DEVICE = 1, /* CU_MEM_LOCATION_TYPE_DEVICE */
    SHUF__CUDA_ACCESS_READ = 1,     /* CU_MEM_ACCESS_FLAGS_PROT_READ */
    SHUF__CUDA_ACCESS_READ_WRITE = 3,
    SHUF__CUDA_LAZY_PEER = 1, /* CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS */
};

/* X(name, symbol version, arguments). Contexts and events are void *, device pointers and
 * allocations uint64_t, devices int. All return a CUresult, 0 for success. */
#define SHUF__CUDA_MAP(X)                                                                      \
    X(cuInit, , (unsigned flags))                                                              \
    X(cuGetErrorString, , (int result, const char **text))                                     \
    X(cuDeviceGetCount, , (int *count))                                                        \
    X(cuDeviceGet, , (int *device, int ordinal))                                               \
    X(cuDeviceGetUuid, _v2, (uint8_t uuid[16], int device))                                    \
    X(cuCtxGetCurrent, , (void **context))                                                     \
    X(cuCtxGetDevice, , (int *device))                                                         \
    X(cuCtxPushCurrent, _v2, (void *context))                                                  \
    X(cuCtxPopCurrent, _v2, (void **context))                                                  \
    X(cuDevicePrimaryCtxRetain, , (void **context, int device))                                \
    X(cuDevicePrimaryCtxRelease, _v2, (int device))                                            \
    X(cuMemImportFromShareableHandle, , (uint64_t * allocation, void *handle, int type))       \
    X(cuMemAddressReserve, ,                                                                   \
      (uint64_t * address, size_t size, size_t alignment, uint64_t at, unsigned long long))    \
    X(cuMemMap, ,                                                                              \
      (uint64_t address, size_t size, size_t offset, uint64_t allocation, unsigned long long)) \
    X(cuMemSetAccess, ,                                                                        \
      (uint64_t address, size_t size, const struct shuf__cuda_access *access, size_t count))   \
    X(cuMemUnmap, , (uint64_t address, size_t size))                                           \
    X(cuMemAddressFree, , (uint64_t address, size_t size))                                     \
    X(cuMemRelease, , (uint64_t allocation))                                                   \
    X(cuIpcOpenMemHandle, _v2, (uint64_t * address, struct shuf__cuda_ipc, unsigned flags))    \
    X(cuIpcCloseMemHandle, , (uint64_t address))                                               \
    X(cuIpcOpenEventHandle, , (void **event, struct shuf__cuda_ipc))                           \
    X(cuEventSynchronize, , (void *event))                                                     \
    X(cuEventDestroy, _v2, (void *event))                                                      \
    X(cuMemcpyDtoH, _v2, (void *out, uint64_t address, size_t size))                           \
    X(cuMemcpyHtoD, _v2, (uint64_t address, const void *in, size_t size))                      \
    X(cuStreamSynchronize, , (void *stream))

struct shuf__cuda {
#define X(name, version, arguments) int(*name) arguments;
    SHUF__CUDA_MAP(X)
#undef X
};

/* Loads the library once for all threads; it stays loaded. Fails with SHUF_DEVICE if it is missing
 * or too old. Thread-safe. */
shuf_status shuf__cuda_load(const struct shuf__cuda **cuda, struct shuf__error *error);

/* Fails with SHUF_DEVICE; the text has the GPU, the CUDA function and CUDA's text for `result`. */
shuf_status shuf__cuda_fail(const struct shuf__cuda *cuda, const char *gpu, const char *call,
                            int result, struct shuf__error *error);

#endif
