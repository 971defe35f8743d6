/* SPDX-License-Identifier: MIT
 *
 * Views of another process's device memory. Work is done in the caller's current
 * context where that is of the GPU in question, else in the GPU's primary one,
 * which is then pushed for the call only and kept alive until the handle closes.
 */
#ifndef SHUF__GPU_H
#define SHUF__GPU_H

#include "cuda.h"
#include "offer.h"

#include <stdbool.h>

/* One that a handle has had views of. */
struct shuf__gpu {
    struct shuf__gpu *next;
    const struct shuf__cuda *cuda; /* NULL: of no use in this process */
    char id[64];                   /* "GPU-<uuid>" */
    int device;
    void *primary; /* its primary context, once it was needed */
};

struct shuf__gpu_view {
    struct shuf__gpu *gpu;
    uint64_t address, bytes;
    void *context; /* that a cudaIpcMemHandle_t was opened in; NULL: it is none */
};

/* `gpus` is the handle's list, empty at first. SHUF_DEVICE when this process does not see it. */
shuf_status shuf__gpu_find(struct shuf__gpu **gpus, const char *id, struct shuf__gpu **gpu,
                           struct shuf__error *error);
void shuf__gpus_close(struct shuf__gpu **gpus);

/* In a child after fork(), where CUDA does not work and nothing of theirs is mapped: what follows
 * here frees memory alone. */
void shuf__gpus_forget(struct shuf__gpu *gpus);

/* CUDA_FD: maps the whole of it, read-only unless `writable`; the descriptor stays the caller's. */
shuf_status shuf__gpu_map(struct shuf__gpu *gpu, int fd, uint64_t bytes, bool writable,
                          struct shuf__gpu_view *view, struct shuf__error *error);
/* CUDA_IPC. */
shuf_status shuf__gpu_open(struct shuf__gpu *gpu, const uint8_t handle[SHUF__IPC_BYTES],
                           uint64_t bytes, struct shuf__gpu_view *view, struct shuf__error *error);
void shuf__gpu_unmap(struct shuf__gpu_view *view);

/* Whether the view may be used in the context that a new one would be for. */
shuf_status shuf__gpu_fits(const struct shuf__gpu_view *view, bool *fits,
                           struct shuf__error *error);

/* Copies [offset, offset + bytes) to host memory, once `event` (may be NULL) is over. */
shuf_status shuf__gpu_read(const struct shuf__gpu_view *view, void *event, uint64_t offset,
                           size_t bytes, void *out, struct shuf__error *error);

/* The other way. */
shuf_status shuf__gpu_write(const struct shuf__gpu_view *view, uint64_t offset, size_t bytes,
                            const void *in, struct shuf__error *error);

/* A CUevent. */
shuf_status shuf__gpu_event_open(const struct shuf__gpu_view *view,
                                 const uint8_t handle[SHUF__IPC_BYTES], void **event,
                                 struct shuf__error *error);
void shuf__gpu_event_close(const struct shuf__gpu_view *view, void *event);

#endif
