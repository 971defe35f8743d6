/* SPDX-License-Identifier: MIT
 *
 * The declarations that the host code of the CUDA backend shares: the opened device, the report of
 * a failure, and the functions of the table.
 */
#ifndef SHUF__CUDA_CUDA_CUH
#define SHUF__CUDA_CUDA_CUH

#include "copy.cuh"
#include "driver.cuh"
#include "host/host.h"
#include "permute.cuh"
#include "quick.cuh"
#include "stream.cuh"

extern "C" const shuf__backend_ops shuf__cuda_ops;

namespace shuf
{

/* Results for host memory need no workspace up to this size. They are computed in cuda->staging. */
constexpr uint64_t staging_bytes = 2 * bounce_piece;

/* The launched computation, until `wait` has reported its end. */
struct Launched {
    const char *name;  /* for messages */
    bool quick;        /* a ticket in cuda->word signals its end; otherwise the event cuda->stop */
    bool recorded;     /* quick: cuda->stop has been recorded too, after the launch */
    bool computed;     /* all values are computed, but perhaps not yet copied to host memory */
    bool cancelled;    /* the computation was cancelled while values were copied */
    uint64_t began_ns; /* quick: the time of the launch, by the host's clock */
    uint64_t device_ns;
    Copy copy; /* to a block of host memory; 0 bytes for other blocks */
    bool (*is_cancelled)(void *context);
    void *cancel_context;
};

struct Cuda {
    shuf__backend base; /* the first field, so a pointer to it is also a pointer to the Cuda */
    int device;
    int sm_count;
    int threads; /* of the host, for results in host memory; `simd` has their loops */
    const shuf__simd_ops *simd;
    Driver driver;
    cudaStream_t first, later; /* blocks of kernels in `first` come before those in `later` */
    cudaStream_t stream;       /* the one in use */
    cudaEvent_t start, stop;
    Scratch scratch;
    Bounce bounce;
    void *staging;           /* device memory: a small workspace, or the list of a shuffle */
    unsigned long long *sum; /* device memory */
    shuf__sums *sums;        /* device memory: sums_parts of them */
    volatile uint64_t *word; /* pinned: the ticket of the last finished quick computation */
    uint64_t *word_there;    /* its address on the device */
    uint64_t ticket;
    Launched launched;
};

inline Cuda *cuda_of(shuf__backend *backend)
{
    return reinterpret_cast<Cuda *>(backend);
}

/* Selects the device for the calling thread. Each thread must do this before it calls the runtime.
 */
cudaError_t use_device(const Cuda *cuda);

/* Small computations come first, and other work of this backend goes to the same stream. The
 * backend must be idle. */
inline void choose_stream(Cuda *cuda, const shuf__request *request)
{
    cuda->stream = shuf__backend_is_small(&shuf__cuda_ops, request) ? cuda->first : cuda->later;
}

/* Writes `error`. Also clears the runtime's last error, because the next call would report it. */
shuf_status fail(shuf__error *error, cudaError_t e, const char *step);

/* Runs the call, unless an earlier call failed. Keeps the first failure. */
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

/* launch.cu: the functions of the vtable. */
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
