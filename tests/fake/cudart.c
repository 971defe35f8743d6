/* SPDX-License-Identifier: MIT
 *
 * See cudart.h. Also the kernel of libshuf-nccl, as a loop.
 */
#include "cudart.h"

#include "move.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Tests find these by name. */
#define EXPORT __attribute__((visibility("default")))

struct CUstream_st {
    atomic_int busy, users; /* host functions that run; owners of this object */
};

struct CUevent_st {
    cudaStream_t stream; /* that was busy at the record; else NULL */
};

static atomic_size_t live;
static _Thread_local size_t malloc_most = SIZE_MAX;

EXPORT size_t fake_cudart_live(void)
{
    return live;
}

EXPORT void fake_cudart_limit_malloc(size_t bytes)
{
    malloc_most = bytes;
}

/* ---- Device and memory --------------------------------------------------------- */

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = 1;
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device)
{
    *device = 0;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    return device == 0 ? cudaSuccess : cudaErrorInvalidDevice;
}

const char *cudaGetErrorString(cudaError_t error)
{
    return error == cudaErrorMemoryAllocation ? "out of memory" : "the fake fails";
}

cudaError_t cudaGetLastError(void)
{
    return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *data)
{
    (void)data;
    memset(attributes, 0, sizeof *attributes);
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **memory, size_t bytes)
{
    *memory = bytes > malloc_most ? NULL : aligned_alloc(256, (bytes + 255) / 256 * 256);
    live += *memory != NULL;
    return *memory ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaFree(void *memory)
{
    live -= memory != NULL;
    free(memory);
    return cudaSuccess;
}

cudaError_t cudaFreeAsync(void *memory, cudaStream_t stream)
{
    (void)stream;
    return cudaFree(memory);
}

cudaError_t cudaMemcpy(void *out, const void *in, size_t bytes, enum cudaMemcpyKind kind)
{
    (void)kind;
    memcpy(out, in, bytes);
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *out, const void *in, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    (void)stream;
    return cudaMemcpy(out, in, bytes, kind);
}

/* ---- Streams and events -------------------------------------------------------- */

static void let_go(cudaStream_t stream)
{
    if (stream && --stream->users == 0)
        free(stream);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    (void)flags;
    *stream = calloc(1, sizeof **stream);
    (*stream)->users = 1;
    live++;
    return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    return stream->busy > 0 ? cudaErrorNotReady : cudaSuccess;
}

/* Waits for the stream, as the driver does although CUDA's documents say that it returns at once.
 */
cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    while (stream->busy > 0)
        usleep(100);
    let_go(stream);
    live--;
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    (void)flags;
    *event = calloc(1, sizeof **event);
    live++;
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    let_go(event->stream);
    free(event);
    live--;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    let_go(event->stream);
    event->stream = stream && stream->busy > 0 ? stream : NULL;
    if (event->stream)
        stream->users++;
    return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    return event->stream && event->stream->busy > 0 ? cudaErrorNotReady : cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    while (cudaEventQuery(event) == cudaErrorNotReady)
        usleep(100);
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    (void)flags, (void)stream;
    return cudaEventQuery(event) == cudaSuccess ? cudaSuccess : cudaErrorNotSupported;
}

struct host_function {
    cudaHostFn_t run;
    void *context;
    cudaStream_t stream;
};

static void *run_host_function(void *context)
{
    struct host_function f = *(struct host_function *)context;
    free(context);
    f.run(f.context);
    f.stream->busy--;
    let_go(f.stream);
    return NULL;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t run, void *context)
{
    pthread_t thread;
    struct host_function *f = malloc(sizeof *f);
    *f = (struct host_function){run, context, stream};
    stream->busy++;
    stream->users++;
    if (pthread_create(&thread, NULL, run_host_function, f) != 0)
        abort();
    pthread_detach(thread);
    return cudaSuccess;
}

/* ---- The kernel ---------------------------------------------------------------- */

static uint64_t number_at(const void *list, unsigned width, uint64_t at)
{
    return !list ? at : width == 4 ? ((const uint32_t *)list)[at] : ((const uint64_t *)list)[at];
}

cudaError_t shuf__nccl_move(const struct shuf__nccl_move *m, cudaStream_t stream)
{
    (void)stream;
    for (unsigned i = 0; i < m->segment_count; i++) {
        const struct shuf__nccl_segment *s = m->segments + i;
        const uint64_t begin = shuf__nccl_slice(s->count, m->round, m->rounds);
        const uint64_t count = shuf__nccl_slice_count(s->count, m->round, m->rounds);
        const uint64_t from = s->from + (m->in_list ? begin : 0);
        const uint64_t to = s->to + (m->out_list ? begin : 0);
        for (uint64_t k = 0; k < count; k++)
            memcpy((char *)m->out + number_at(m->out_list, m->width, to + k) * m->record,
                   (const char *)m->in + number_at(m->in_list, m->width, from + k) * m->record,
                   m->record);
    }
    return cudaSuccess;
}
