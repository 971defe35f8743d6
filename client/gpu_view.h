/* SPDX-License-Identifier: MIT
 *
 * Mappings of the daemon's device memory, the *views*. Each function uses the caller's current CUDA
 * context if this context belongs to the same GPU. Otherwise it makes the GPU's primary context
 * current during the call. The handle retains the primary context until it closes.
 */
#ifndef SHUF__GPU_VIEW_H
#define SHUF__GPU_VIEW_H

#include "error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- The library ---- */

/* The functions of CUDA's driver interface that leases need. The first lease of device memory loads
 * them from libcuda.so.1. So programs without device memory need no CUDA, and the build needs no
 * toolkit. The types here replace those of cuda.h, and the versions of the symbols are those in its
 * macros. */

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

/* ---- GPUs and views ---- */

enum { SHUF__IPC_BYTES = 64 }; /* size of a cudaIpcMemHandle_t and of a cudaIpcEventHandle_t */

/* A GPU that a handle has, or had, views of. */
struct shuf__gpu {
    struct shuf__gpu *next;
    const struct shuf__cuda *cuda; /* NULL: CUDA does not work in this process */
    char id[64];                   /* "GPU-<uuid>" */
    int device;
    void *primary; /* the retained primary context, or NULL */
};

struct shuf__gpu_view {
    struct shuf__gpu *gpu;
    uint64_t address, bytes;
    void *context; /* CUDA_IPC: the context that the handle is open in; else NULL */
};

/* Finds or adds the GPU in the handle's list `gpus`, which is NULL at first. Fails with SHUF_DEVICE
 * when this process does not see the GPU, or SHUF_NO_MEMORY. */
shuf_status shuf__gpu_find(struct shuf__gpu **gpus, const char *id, struct shuf__gpu **gpu,
                           struct shuf__error *error);
void shuf__gpus_close(struct shuf__gpu **gpus);

/* For a child process after fork(): CUDA does not work there, and no device memory is mapped. After
 * this call, the functions here only free host memory. */
void shuf__gpus_forget(struct shuf__gpu *gpus);

/* CUDA_FD: maps the whole allocation, read-only unless `writable`. The caller closes `fd`. */
shuf_status shuf__gpu_map(struct shuf__gpu *gpu, int fd, uint64_t bytes, bool writable,
                          struct shuf__gpu_view *view, struct shuf__error *error);
/* CUDA_IPC: opens the handle in the context above. */
shuf_status shuf__gpu_open(struct shuf__gpu *gpu, const uint8_t handle[SHUF__IPC_BYTES],
                           uint64_t bytes, struct shuf__gpu_view *view, struct shuf__error *error);
void shuf__gpu_unmap(struct shuf__gpu_view *view);

/* Sets *fits to true if the view works in the context that a new view would use. */
shuf_status shuf__gpu_fits(const struct shuf__gpu_view *view, bool *fits,
                           struct shuf__error *error);

/* Waits for `event` (may be NULL), then copies [offset, offset + bytes) to host memory. */
shuf_status shuf__gpu_read(const struct shuf__gpu_view *view, void *event, uint64_t offset,
                           size_t bytes, void *out, struct shuf__error *error);

/* Copies host memory to [offset, offset + bytes). Other contexts see it when this returns. */
shuf_status shuf__gpu_write(const struct shuf__gpu_view *view, uint64_t offset, size_t bytes,
                            const void *in, struct shuf__error *error);

/* Opens an interprocess handle; *event is a CUevent. */
shuf_status shuf__gpu_event_open(const struct shuf__gpu_view *view,
                                 const uint8_t handle[SHUF__IPC_BYTES], void **event,
                                 struct shuf__error *error);
void shuf__gpu_event_close(const struct shuf__gpu_view *view, void *event);

#endif
