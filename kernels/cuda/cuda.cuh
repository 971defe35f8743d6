/* SPDX-License-Identifier: MIT
 *
 * What the files of the CUDA backend share on the host's side: the opened device,
 * how a failure is reported, how an event is waited for.
 */
#ifndef SHUF__CUDA_CUDA_CUH
#define SHUF__CUDA_CUDA_CUH

#include "copy.cuh"
#include "driver.cuh"
#include "host/host.h"
#include "permute.cuh"
#include "quick.cuh"
#include "stream.cuh"

namespace shuf
{

/* What is computed on its way to host memory needs no workspace up to that size. */
constexpr uint64_t staging_bytes = 2 * bounce_piece;

/* What was launched and not yet waited for to its end. */
struct Launched {
    const char *name;  /* for messages */
    bool quick;        /* signalled by the ticket in cuda->word, else by the event cuda->stop */
    bool recorded;     /* of a quick one: the event lies behind it all the same */
    bool computed;     /* its values are there; what may be left is to copy them */
    bool cancelled;    /* while they were copied */
    uint64_t began_ns; /* of a quick one, by the host's clock */
    uint64_t device_ns;
    Copy copy; /* into a block of host memory; of no bytes for any other */
    bool (*is_cancelled)(void *context);
    void *cancel_context;
};

struct Cuda {
    shuf__backend base; /* first, so that one pointer serves for both */
    int device;
    int sm_count;
    int threads; /* of the host, for results in its memory, and which loops they run */
    const shuf__simd_ops *simd;
    Driver driver;
    cudaStream_t stream;
    cudaEvent_t start, stop;
    Scratch scratch;
    Bounce bounce;
    void *staging;           /* device memory, instead of a small workspace; a shuffle's list */
    unsigned long long *sum; /* device memory */
    shuf__sums *sums;        /* the same: of sums_parts */
    float *gauss_table;      /* the same */
    volatile uint64_t *word; /* pinned: the ticket of the last quick computation that is done */
    uint64_t *word_there;    /* the same, where the device sees it */
    uint64_t ticket;
    Launched launched;
};

inline Cuda *cuda_of(shuf__backend *backend)
{
    return reinterpret_cast<Cuda *>(backend);
}

/* Each thread that calls the runtime must name the device once. */
cudaError_t use_device(const Cuda *cuda);

/* Writes the error and clears it in the runtime, where it is not sticky: the next call must not
 * find it. */
shuf_status fail(shuf__error *error, cudaError_t e, const char *step);

/* Runs the call unless an earlier one failed, and keeps the first failure. */
#define SHUF__STEP(e, step, call)                                \
    do {                                                         \
        if ((e) == cudaSuccess && ((e) = (call)) != cudaSuccess) \
            fail(error, (e), (step));                            \
    } while (0)

/* memory.cu: the functions of the vtable. */
shuf_status cuda_memory(shuf__backend *backend, shuf__memory kind, uint64_t *available,
                        uint64_t *total, shuf__error *error);
shuf_status cuda_alloc(shuf__backend *backend, shuf__memory kind, uint64_t bytes,
                       shuf__block *block, shuf__error *error);
void cuda_free(shuf__backend *backend, shuf__block *block);
int cuda_export(const shuf__block *block);

/* launch.cu: the same. */
shuf__workspace cuda_workspace(const shuf__backend *backend, const shuf__request *request,
                               shuf__memory kind);
shuf_status cuda_launch(shuf__backend *backend, const shuf__computation *computation,
                        shuf__block *block, shuf__error *error);
shuf_status cuda_wait(shuf__backend *backend, uint64_t timeout_ns, bool *done, uint64_t *device_ns,
                      shuf__error *error);
shuf_status cuda_event(shuf__backend *backend, shuf__block *block, uint8_t handle[SHUF__IPC_HANDLE],
                       shuf__error *error);

} // namespace shuf

#endif
