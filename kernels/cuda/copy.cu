/* SPDX-License-Identifier: MIT
 *
 * See cuda.cuh: copies from device to host memory, and waiting.
 */
#include "cuda.cuh"

#include <ctime>

namespace shuf
{

uint64_t now_ns()
{
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<uint64_t>(t.tv_sec) * 1000000000u + static_cast<uint64_t>(t.tv_nsec);
}

uint64_t deadline(uint64_t timeout_ns)
{
    uint64_t now = now_ns();
    return timeout_ns < forever - now ? now + timeout_ns : forever;
}

/* Queries the event. If the event is not ready, the runtime keeps this as its last error, which the
 * next launch would report. So the code clears the error. */
static cudaError_t query(cudaEvent_t event)
{
    cudaError_t e = cudaEventQuery(event);
    if (e == cudaErrorNotReady)
        cudaGetLastError();
    return e;
}

cudaError_t await(cudaEvent_t event, uint64_t until, bool *happened)
{
    const timespec nap = {0, static_cast<long>(spin_ns)};
    const uint64_t awake = now_ns() + spin_ns;
    cudaError_t e = query(event);
    while (e == cudaErrorNotReady && now_ns() < (until < awake ? until : awake))
        e = query(event);
    if (e == cudaErrorNotReady && until == forever)
        e = cudaEventSynchronize(event);
    while (e == cudaErrorNotReady && now_ns() < until) {
        nanosleep(&nap, nullptr);
        e = query(event);
    }
    *happened = e == cudaSuccess;
    return e == cudaErrorNotReady ? cudaSuccess : e;
}

cudaError_t bounce_make(Bounce *bounce)
{
    const unsigned flags = cudaEventBlockingSync | cudaEventDisableTiming;
    void *there = nullptr;
    cudaError_t e = cudaHostAlloc(&bounce->pieces, 2 * bounce_piece, cudaHostAllocMapped);
    if (e == cudaSuccess)
        e = cudaHostGetDevicePointer(&there, bounce->pieces, 0);
    bounce->there = static_cast<char *>(there);
    for (cudaEvent_t &event : bounce->filled)
        if (e == cudaSuccess)
            e = cudaEventCreateWithFlags(&event, flags);
    return e;
}

void bounce_free(Bounce *bounce)
{
    for (cudaEvent_t event : bounce->filled)
        if (event)
            cudaEventDestroy(event);
    cudaFreeHost(bounce->pieces);
    *bounce = Bounce{};
}

/* The number, 0 or 1, of the piece that the byte at `offset` passes through. */
static int piece_of(uint64_t offset)
{
    return static_cast<int>(offset / bounce_piece % 2);
}

static uint64_t piece_from(const Copy &copy, uint64_t offset)
{
    return copy.bytes - offset < bounce_piece ? copy.bytes - offset : bounce_piece;
}

static cudaError_t issue(Bounce &bounce, Copy *copy, cudaStream_t stream)
{
    cudaError_t e = cudaSuccess;
    while (e == cudaSuccess && copy->issued < copy->bytes &&
           copy->issued - copy->taken < 2 * bounce_piece) {
        const int piece = piece_of(copy->issued);
        const uint64_t bytes = piece_from(*copy, copy->issued);
        e = cudaMemcpyAsync(bounce.pieces + piece * bounce_piece, copy->from + copy->issued, bytes,
                            cudaMemcpyDeviceToHost, stream);
        if (e == cudaSuccess)
            e = cudaEventRecord(bounce.filled[piece], stream);
        copy->issued += bytes;
    }
    return e;
}

cudaError_t copy_piece(Bounce &bounce, Copy *copy, int threads, cudaStream_t stream, uint64_t until,
                       bool *taken)
{
    const int piece = piece_of(copy->taken);
    *taken = false;
    cudaError_t e = issue(bounce, copy, stream);
    if (e == cudaSuccess)
        e = await(bounce.filled[piece], until, taken);
    if (e == cudaSuccess && *taken) {
        const uint64_t bytes = piece_from(*copy, copy->taken);
        shuf__host_copy(threads, copy->to + copy->taken, bounce.pieces + piece * bounce_piece,
                        bytes);
        copy->taken += bytes;
    }
    return e;
}

} // namespace shuf
