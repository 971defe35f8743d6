/* SPDX-License-Identifier: MIT
 *
 * The declarations that the host code of the CUDA backend shares: the opened device, the functions
 * of libcuda, copies to host memory, the report of a failure, and the functions of the table.
 */
#ifndef SHUF__CUDA_CUDA_CUH
#define SHUF__CUDA_CUDA_CUH

#include "host/host.h"
#include "permute.cuh"
#include "quick.cuh"
#include "stream.cuh"

#include <cstdint>
#include <cudaTypedefs.h>
#include <cuda_runtime.h>

extern "C" const shuf__backend_ops shuf__cuda_ops;

namespace shuf
{

/* ---- copy.cu: copies to host memory, and waiting ---- */

/* A copy goes through two pieces of pinned memory. While the device fills one piece, the host
 * empties the other. Without these pieces the driver would copy to memory that is not pinned, which
 * is several times slower. */
struct Bounce {
    char *pieces;          /* pinned */
    char *there;           /* the address of `pieces` on the device */
    cudaEvent_t filled[2]; /* one for each piece */
};

constexpr uint64_t bounce_piece = 4 << 20;

cudaError_t bounce_make(Bounce *bounce);
void bounce_free(Bounce *bounce);

struct Copy {
    const char *from; /* device memory */
    char *to;
    uint64_t bytes;
    uint64_t issued, taken; /* bytes that are queued so far; bytes that are in `to` so far */
};

inline bool is_complete(const Copy &copy)
{
    return copy.taken == copy.bytes;
}

/* Waits for the next piece until the time `until`. If the piece arrives, the call copies it with
 * `threads` threads of the host, and sets *taken. */
cudaError_t copy_piece(Bounce &bounce, Copy *copy, int threads, cudaStream_t stream, uint64_t until,
                       bool *taken);

/* Times of now_ns(), the host's clock. `forever` is a time that never comes. */
constexpr uint64_t forever = UINT64_MAX;
uint64_t now_ns();
uint64_t deadline(uint64_t timeout_ns);

/* A waiting thread polls for so long, and then sleeps. Most work ends sooner, and waking a thread
 * takes tens of microseconds. */
constexpr uint64_t spin_ns = 50000;

/* Waits for the event until the time `until`, and queries it at least once. The event must be
 * created with cudaEventBlockingSync; otherwise the thread would not sleep. */
cudaError_t await(cudaEvent_t event, uint64_t until, bool *happened);

/* ---- memory.cu: the functions of libcuda that the runtime does not offer ---- */

/* They are found by name and at run time. If the program were linked with libcuda, it would not
 * start on a machine without a driver. */

/* X(name in libcuda, name here, CUDA version of the function) */
#define SHUF__DRIVER_MAP(X)                                  \
    X(cuGetErrorString, error_string, 6000)                  \
    X(cuMemCreate, create, 10020)                            \
    X(cuMemRelease, release, 10020)                          \
    X(cuMemExportToShareableHandle, export_to_handle, 10020) \
    X(cuMemAddressReserve, reserve, 10020)                   \
    X(cuMemAddressFree, unreserve, 10020)                    \
    X(cuMemMap, map, 10020)                                  \
    X(cuMemUnmap, unmap, 10020)                              \
    X(cuMemSetAccess, set_access, 10020)

struct Driver {
#define X(symbol, name, version) PFN_##symbol##_v##version name;
    SHUF__DRIVER_MAP(X)
#undef X
};

shuf_status driver_find(Driver *driver, shuf__error *error);

/* Does the same as fail(), for errors of the driver. */
shuf_status driver_fail(const Driver &driver, shuf__error *error, CUresult e, const char *step);

/* ---- The opened device ---- */

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

/* Fails if the compute mode lets no process use the device. */
shuf_status refuse_prohibited(int device, shuf__error *error);

/* Runs the call, unless an earlier call failed. Keeps the first failure. */
#define SHUF__STEP(e, step, call)                                \
    do {                                                         \
        if ((e) == cudaSuccess && ((e) = (call)) != cudaSuccess) \
            fail(error, (e), (step));                            \
    } while (0)

/* ---- The functions of the vtable ---- */

/* memory.cu */
shuf_status cuda_memory(shuf__backend *backend, shuf__memory kind, uint64_t *available,
                        uint64_t *total, shuf__error *error);
shuf_status cuda_alloc(shuf__backend *backend, shuf__memory kind, uint64_t bytes,
                       shuf__block *block, shuf__error *error);
void cuda_free(shuf__backend *backend, shuf__block *block);
int cuda_export(const shuf__block *block);

/* launch.cu */
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
