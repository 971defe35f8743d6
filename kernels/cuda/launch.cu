/* SPDX-License-Identifier: MIT
 *
 * Launches a computation, waits for it, and copies the values if the block is host memory.
 *
 * A quick computation is a single kernel. At its end it writes a ticket, the number of the
 * computation, to a word of host memory. The host sees this word sooner than an event.
 */
#include "cuda.cuh"

#include "exchange.cuh"
#include "host/shuffle.h"
#include "orders.cuh"
#include "shuffle.cuh"

#include <cassert>
#include <cstring>

namespace shuf
{

namespace
{

bool is_quick(const shuf__computation *computation)
{
    const shuf__request &request = computation->request;
    if (request.kind == SHUF__PERMUTATION && request.permutation.window)
        return false;
    return request.kind != SHUF__SHUFFLE && request.kind != SHUF__EXCHANGE &&
           shuf__request_shape(&request).rows == 1 &&
           shuf__backend_is_quick(&shuf__cuda_ops, &request);
}

/* Waits until the stream is idle, and forgets the launch. */
void end(Cuda *cuda)
{
    cudaStreamSynchronize(cuda->stream);
    cuda->launched = Launched{};
}

cudaError_t draw(const Cuda *cuda, const shuf__request &request, void *out, const Signal *signal)
{
    return stream_async(request.stream, request.dtype, cuda->sm_count, {out, signal, nullptr},
                        cuda->stream);
}

/* Launches a quick computation. If the block is host memory, the kernel writes its few values
 * directly to pinned host memory. */
shuf_status launch_quick(Cuda *cuda, const shuf__computation *computation, const shuf__block *block,
                         shuf__error *error)
{
    Launched &now = cuda->launched;
    const bool to_host = shuf__memory_is_host(block->kind);
    cudaError_t e = cudaSuccess;
    now.quick = true;
    now.began_ns = now_ns();
    if (to_host)
        now.copy = Copy{cuda->bounce.there, static_cast<char *>(block->memory),
                        shuf__request_shape(&computation->request).bytes, 0, 0};
    const Signal signal = {cuda->word_there, ++cuda->ticket};
    void *const out = to_host ? cuda->bounce.there : block->memory;
    SHUF__STEP(e, "launching a kernel",
               computation->request.kind == SHUF__STREAM
                   ? draw(cuda, computation->request, out, &signal)
                   : quick_async(computation->request.permutation, width_of(*computation), out,
                                 signal, cuda->stream));
    return e == cudaSuccess ? SHUF_OK : error->status;
}

/* Device memory of `bytes` bytes, which the computation may use until its end. */
void *workspace_of(const Cuda *cuda, const shuf__computation *computation, uint64_t bytes)
{
    if (bytes <= staging_bytes)
        return cuda->staging;
    assert(computation->workspace && computation->workspace->bytes >= bytes);
    return computation->workspace->memory;
}

/* The list of a windowed order, in bytes; else 0. */
uint64_t list_bytes(const shuf__request &request)
{
    return request.kind == SHUF__PERMUTATION && request.permutation.window
               ? windowed_bytes(request.permutation, shuf__dtype_bytes(request.dtype))
               : 0;
}

/* The workspace of a permutation or stream: first the result, if it is for host memory, then the
 * list. */
struct Layout {
    uint64_t list, bytes;

    Layout(const shuf__request &request, shuf__memory kind)
        : list(shuf__memory_is_host(kind)
                   ? (shuf__request_shape(&request).bytes + 255) & ~uint64_t{255}
                   : 0),
          bytes(list + list_bytes(request))
    {
    }
};

/* The address to which the kernels write. */
void *find_target(Cuda *cuda, const shuf__computation *computation, const shuf__block *block)
{
    const uint64_t bytes = shuf__request_shape(&computation->request).bytes;
    if (!shuf__memory_is_host(block->kind))
        return block->memory;
    void *const out =
        workspace_of(cuda, computation, Layout(computation->request, block->kind).bytes);
    cuda->launched.copy =
        Copy{static_cast<const char *>(out), static_cast<char *>(block->memory), bytes, 0, 0};
    return out;
}

/* Shuffles in device memory, by windows if the workspace has room for them. */
cudaError_t shuffle_there(const Cuda *cuda, const shuf__computation &computation, void *out,
                          bool *cancelled)
{
    static_assert(shuffle_list_bytes <= staging_bytes, "the list fits cuda->staging");
    if (is_large(computation.request.shuffle))
        return large_async(cuda->simd, computation, computation.input->memory, out, cuda->stream,
                           cancelled);
    const uint64_t best_bytes = shuffle_best_bytes(computation.request.shuffle);
    const bool best =
        best_bytes && computation.workspace && computation.workspace->bytes >= best_bytes;
    return shuffle_async(cuda->scratch, computation, computation.input->memory, out,
                         best ? computation.workspace->memory : nullptr, cuda->staging,
                         cuda->stream, cancelled);
}

/* Queues the kernels. A stream is checked for cancellation only once, before its one or two
 * launches, because these end soon. */
cudaError_t compute_async(const Cuda *cuda, const shuf__computation &computation,
                          const shuf__block &block, void *out, bool *cancelled)
{
    if (computation.request.kind == SHUF__SHUFFLE)
        return shuffle_there(cuda, computation, out, cancelled);
    if (computation.request.kind == SHUF__EXCHANGE)
        return exchange_async(cuda->simd, computation, exchange_methods(computation.request.plan),
                              out, cuda->stream, cancelled);
    if (computation.request.kind == SHUF__PERMUTATION && !computation.request.permutation.window)
        return permute_async(cuda->scratch, computation, out, cuda->stream, cancelled);
    *cancelled = computation.cancelled && computation.cancelled(computation.cancel_context);
    if (*cancelled)
        return cudaSuccess;
    if (computation.request.kind == SHUF__STREAM)
        return draw(cuda, computation.request, out, nullptr);
    const Layout layout(computation.request, block.kind);
    char *const list = static_cast<char *>(workspace_of(cuda, &computation, layout.bytes));
    return windowed_async(cuda->simd, cuda->threads, computation, out, list + layout.list,
                          cuda->stream, cancelled);
}

shuf_status launch_timed(Cuda *cuda, const shuf__computation *computation, const shuf__block *block,
                         shuf__error *error)
{
    bool cancelled = false;
    void *const out = find_target(cuda, computation, block);
    cudaError_t e = cudaSuccess;
    SHUF__STEP(e, "recording an event", cudaEventRecord(cuda->start, cuda->stream));
    SHUF__STEP(e, "launching the kernels",
               compute_async(cuda, *computation, *block, out, &cancelled));
    SHUF__STEP(e, "recording an event", cudaEventRecord(cuda->stop, cuda->stream));
    if (e == cudaSuccess && !cancelled)
        return SHUF_OK;
    end(cuda);
    return cancelled ? shuf__fail(error, SHUF_CANCELLED, "%s: cancelled",
                                  shuf__request_name(&computation->request))
                     : error->status;
}

/* The host's processors move records in host memory, and make plans there. */
shuf_status compute_here(Cuda *cuda, const shuf__computation *computation, const shuf__block *block,
                         shuf__error *error)
{
    const uint64_t began = now_ns();
    const bool moves = computation->request.kind == SHUF__SHUFFLE;
    if (!(moves ? shuf__host_shuffle : shuf__host_exchange)(cuda->simd, cuda->threads, computation,
                                                            block->memory))
        return shuf__fail(error, SHUF_CANCELLED, "%s: cancelled", cuda->launched.name);
    cuda->launched.computed = true;
    cuda->launched.device_ns = now_ns() - began;
    return SHUF_OK;
}

/* Waits for the ticket. After spin_ns it waits for an event instead, because the GPU may be busy
 * with other work or may have failed. */
cudaError_t await_word(Cuda *cuda, uint64_t until)
{
    Launched &now = cuda->launched;
    const uint64_t awake = now_ns() + spin_ns;
    cudaError_t e = cudaSuccess;
    while (__atomic_load_n(cuda->word, __ATOMIC_ACQUIRE) != cuda->ticket && !now.computed) {
        const uint64_t time = now_ns();
        if (time < awake && time < until)
            continue;
        if (!now.recorded)
            e = cudaEventRecord(cuda->stop, cuda->stream);
        now.recorded = true;
        if (e == cudaSuccess)
            e = await(cuda->stop, until, &now.computed);
        if (e != cudaSuccess || !now.computed)
            return e;
    }
    now.computed = true;
    now.device_ns = now_ns() - now.began_ns;
    return e;
}

cudaError_t await_stop(Cuda *cuda, uint64_t until)
{
    Launched &now = cuda->launched;
    float ms = 0;
    cudaError_t e = await(cuda->stop, until, &now.computed);
    if (e == cudaSuccess && now.computed)
        e = cudaEventElapsedTime(&ms, cuda->start, cuda->stop);
    now.device_ns = static_cast<uint64_t>(static_cast<double>(ms) * 1e6);
    return e;
}

/* Copies values to the block in host memory, until the time `until`. The values of a quick
 * computation are already in pinned memory. */
cudaError_t copy_some(Cuda *cuda, uint64_t until)
{
    Launched &now = cuda->launched;
    cudaError_t e = cudaSuccess;
    bool taken = true;
    if (now.quick && now.copy.bytes) {
        memcpy(now.copy.to, cuda->bounce.pieces, now.copy.bytes);
        now.copy.taken = now.copy.bytes;
    }
    while (e == cudaSuccess && taken && !is_complete(now.copy) && !now.cancelled) {
        e = copy_piece(cuda->bounce, &now.copy, cuda->threads, cuda->stream, until, &taken);
        now.cancelled = now.is_cancelled && now.is_cancelled(now.cancel_context);
        taken = taken && now_ns() < until;
    }
    return e;
}

/* CUB asks the current device for the size of its scratch memory. */
shuf__workspace plan_workspace(const Cuda *cuda, const shuf__request &request)
{
    use_device(cuda);
    const uint64_t bytes = exchange_bytes(request, exchange_methods(request.plan));
    return {SHUF__MEMORY_CUDA_PRIVATE, bytes, bytes};
}

} // namespace

shuf__workspace cuda_workspace(const shuf__backend *backend, const shuf__request *request,
                               shuf__memory kind)
{
    const bool host = shuf__memory_is_host(kind), moves = request->kind == SHUF__SHUFFLE;
    const bool plans = request->kind == SHUF__EXCHANGE;
    const auto *cuda = reinterpret_cast<const Cuda *>(backend);
    if ((moves || plans) && host)
        return shuf__host_workspace(cuda->threads, request);
    if (moves)
        return {SHUF__MEMORY_CUDA_PRIVATE, shuffle_best_bytes(request->shuffle), 0};
    if (plans)
        return plan_workspace(cuda, *request);
    const uint64_t bytes = Layout(*request, kind).bytes;
    const uint64_t needed = bytes > staging_bytes ? bytes : 0;
    return {SHUF__MEMORY_CUDA_PRIVATE, needed, needed};
}

shuf_status cuda_launch(shuf__backend *backend, const shuf__computation *computation,
                        shuf__block *block, shuf__error *error)
{
    Cuda *cuda = cuda_of(backend);
    Launched &now = cuda->launched;
    cudaError_t e = cudaSuccess;
    SHUF__STEP(e, "choosing the device", use_device(cuda));
    if (e != cudaSuccess)
        return error->status;
    choose_stream(cuda, &computation->request);
    now = Launched{};
    now.name = shuf__request_name(&computation->request);
    now.is_cancelled = computation->cancelled;
    now.cancel_context = computation->cancel_context;
    now.computed = shuf__request_shape(&computation->request).count == 0;
    if (now.computed)
        return SHUF_OK;
    const bool moves = computation->request.kind == SHUF__SHUFFLE;
    const bool plans = computation->request.kind == SHUF__EXCHANGE;
    const bool host = shuf__memory_is_host(block->kind);
    assert(!moves || shuf__memory_is_host(computation->input->kind) == host);
    if ((moves || plans) && host)
        return compute_here(cuda, computation, block, error);
    return is_quick(computation) ? launch_quick(cuda, computation, block, error)
                                 : launch_timed(cuda, computation, block, error);
}

shuf_status cuda_wait(shuf__backend *backend, uint64_t timeout_ns, bool *done, uint64_t *device_ns,
                      shuf__error *error)
{
    Cuda *cuda = cuda_of(backend);
    Launched &now = cuda->launched;
    const uint64_t until = deadline(timeout_ns);
    cudaError_t e = cudaSuccess;
    *done = false;
    SHUF__STEP(e, "choosing the device", use_device(cuda));
    if (!now.computed)
        SHUF__STEP(e, "running the kernels",
                   now.quick ? await_word(cuda, until) : await_stop(cuda, until));
    if (now.computed)
        SHUF__STEP(e, "copying the result", copy_some(cuda, until));
    if (e == cudaSuccess && now.cancelled)
        shuf__fail(error, SHUF_CANCELLED, "%s: cancelled", now.name);
    if (e != cudaSuccess || now.cancelled) {
        end(cuda);
        return error->status;
    }
    *done = now.computed && is_complete(now.copy);
    *device_ns = now.device_ns;
    return SHUF_OK;
}

shuf_status cuda_event(shuf__backend *backend, shuf__block *block, uint8_t handle[SHUF__IPC_HANDLE],
                       shuf__error *error)
{
    Cuda *cuda = cuda_of(backend);
    auto event = reinterpret_cast<cudaEvent_t>(block->detail[0]);
    cudaIpcEventHandle_t made;
    static_assert(sizeof made == SHUF__IPC_HANDLE, "the size of a handle in backend.h");
    cudaError_t e = cudaSuccess;
    assert(block->kind == SHUF__MEMORY_CUDA_IPC);
    SHUF__STEP(e, "choosing the device", use_device(cuda));
    if (!event)
        SHUF__STEP(
            e, "creating an event to be shared",
            cudaEventCreateWithFlags(&event, cudaEventInterprocess | cudaEventDisableTiming));
    if (e == cudaSuccess)
        block->detail[0] = reinterpret_cast<uint64_t>(event);
    SHUF__STEP(e, "recording an event", cudaEventRecord(event, cuda->stream));
    SHUF__STEP(e, "making an event shareable", cudaIpcGetEventHandle(&made, event));
    if (e != cudaSuccess)
        return error->status;
    memcpy(handle, &made, sizeof made);
    return SHUF_OK;
}

} // namespace shuf
