/* SPDX-License-Identifier: MIT
 *
 * Mappings of the daemon's device memory, the *views*. Each function uses the caller's current CUDA
 * context if this context belongs to the same GPU. Otherwise it makes the GPU's primary context
 * current during the call. The handle retains the primary context until it closes.
 */
#ifndef SHUF__GPU_VIEW_H
#define SHUF__GPU_VIEW_H

#include "libcuda.h"
#include "mapping_info.h"

#include <stdbool.h>

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
