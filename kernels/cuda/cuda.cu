/* SPDX-License-Identifier: MIT
 *
 * The CUDA backend. It uses one device and one CUDA stream. This file opens and closes the device,
 * computes fingerprints, and reads and writes blocks. memory.cu and launch.cu have the other
 * functions of the table.
 */
#include "cuda.cuh"

#include "host/host.h"
#include "host/kept_file.h"
#include "host/permute.h"
#include "rank_index.h"
#include "tuning.cuh"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

namespace shuf
{

namespace
{

void format_uuid(const cudaUUID_t &uuid, char *text, size_t size)
{
    int at = snprintf(text, size, "GPU-");
    for (int i = 0; i < 16; i++)
        at +=
            snprintf(text + at, size - at, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x",
                     static_cast<unsigned char>(uuid.bytes[i]));
}

/* `name` is an ordinal, or GPU-<uuid>, or NULL for the first device. */
shuf_status find_device(const char *name, int *device, cudaDeviceProp *properties,
                        shuf__error *error)
{
    int count = 0;
    cudaError_t e = cudaGetDeviceCount(&count);
    if (e != cudaSuccess)
        return fail(error, e, "counting devices");
    for (int i = 0; i < count; i++) {
        char uuid[64], ordinal[16];
        SHUF__STEP(e, "reading a device's properties", cudaGetDeviceProperties(properties, i));
        if (e != cudaSuccess)
            return error->status;
        format_uuid(properties->uuid, uuid, sizeof uuid);
        snprintf(ordinal, sizeof ordinal, "%d", i);
        if (!name || strcmp(name, ordinal) == 0 || strcmp(name, uuid) == 0) {
            *device = i;
            return SHUF_OK;
        }
    }
    return shuf__fail(error, SHUF_DEVICE,
                      "backend cuda:%.64s: no such device, expected an ordinal below %d or a UUID",
                      name ? name : "", count);
}

void cuda_close(shuf__backend *backend)
{
    Cuda *cuda = cuda_of(backend);
    use_device(cuda);
    for (cudaStream_t stream : {cuda->first, cuda->later})
        if (stream)
            cudaStreamSynchronize(stream);
    scratch_free(&cuda->scratch);
    bounce_free(&cuda->bounce);
    cudaFree(cuda->staging);
    cudaFree(cuda->sum);
    cudaFree(cuda->sums);
    cudaFreeHost(const_cast<uint64_t *>(cuda->word));
    if (cuda->start)
        cudaEventDestroy(cuda->start);
    if (cuda->stop)
        cudaEventDestroy(cuda->stop);
    for (cudaStream_t stream : {cuda->first, cuda->later})
        if (stream)
            cudaStreamDestroy(stream);
    delete cuda;
}

/* Makes the word to which kernels write tickets. Tickets begin at 1. So 0 means that no computation
 * is done. */
cudaError_t make_word(Cuda *cuda)
{
    void *word = nullptr, *there = nullptr;
    cudaError_t e = cudaHostAlloc(&word, sizeof *cuda->word, cudaHostAllocMapped);
    cuda->word = static_cast<volatile uint64_t *>(word);
    if (e == cudaSuccess)
        e = cudaHostGetDevicePointer(&there, word, 0);
    cuda->word_there = static_cast<uint64_t *>(there);
    if (e == cudaSuccess)
        *cuda->word = 0;
    return e;
}

/* Without priorities, the blocks of a kernel wait until all those of the kernels launched before it
 * have started. */
cudaError_t make_streams(Cuda *cuda)
{
    int least = 0, greatest = 0;
    cudaError_t e = cudaDeviceGetStreamPriorityRange(&least, &greatest);
    if (e == cudaSuccess)
        e = cudaStreamCreateWithPriority(&cuda->first, cudaStreamNonBlocking, greatest);
    if (e == cudaSuccess)
        e = cudaStreamCreateWithPriority(&cuda->later, cudaStreamNonBlocking, least);
    cuda->stream = cuda->later;
    return e;
}

cudaError_t acquire(Cuda *cuda, shuf__error *error)
{
    cudaError_t e = cudaSuccess;
    SHUF__STEP(e, "choosing the device", use_device(cuda));
    SHUF__STEP(e, "creating the streams", make_streams(cuda));
    SHUF__STEP(e, "creating an event", cudaEventCreate(&cuda->start));
    SHUF__STEP(e, "creating an event",
               cudaEventCreateWithFlags(&cuda->stop, cudaEventBlockingSync));
    SHUF__STEP(e, "allocating scratch memory", scratch_make(&cuda->scratch));
    SHUF__STEP(e, "allocating scratch memory", cudaMalloc(&cuda->sum, sizeof *cuda->sum));
    SHUF__STEP(e, "allocating scratch memory",
               cudaMalloc(&cuda->sums, sums_parts * sizeof *cuda->sums));
    SHUF__STEP(e, "allocating scratch memory", cudaMalloc(&cuda->staging, staging_bytes));
    SHUF__STEP(e, "allocating pinned memory", bounce_make(&cuda->bounce));
    SHUF__STEP(e, "allocating pinned memory", make_word(cuda));
    SHUF__STEP(e, "loading the kernels", quick_load());
    SHUF__STEP(e, "loading the kernels", stream_load());
    return e;
}

shuf_status set_up(Cuda *cuda, shuf__error *error)
{
    if (shuf__simd_choose(nullptr, &cuda->simd, error) || acquire(cuda, error) != cudaSuccess)
        return error->status;
    return driver_find(&cuda->driver, error);
}

shuf_status cuda_open(const char *device, unsigned threads, shuf__backend **backend,
                      shuf__error *error)
{
    int index = 0;
    cudaDeviceProp properties;
    if (find_device(device, &index, &properties, error) || refuse_prohibited(index, error))
        return error->status;
    Cuda *cuda = new (std::nothrow) Cuda{};
    if (!cuda)
        return shuf__fail(error, SHUF_NO_MEMORY, "backend cuda: out of memory");
    cuda->base.ops = &shuf__cuda_ops;
    cuda->device = index;
    cuda->sm_count = properties.multiProcessorCount;
    cuda->threads = shuf__host_threads(threads);
    snprintf(cuda->base.device, sizeof cuda->base.device, "%.127s", properties.name);
    format_uuid(properties.uuid, cuda->base.device_id, sizeof cuda->base.device_id);
    if (set_up(cuda, error)) {
        cuda_close(&cuda->base);
        return error->status;
    }
    shuf__kept_files_begin(); /* those of the library; only a daemon opens a backend */
    *backend = &cuda->base;
    return SHUF_OK;
}

shuf_status cuda_fingerprint(shuf__backend *backend, const shuf__block *block, unsigned width,
                             uint64_t values, uint64_t index, uint64_t *fingerprint,
                             shuf__error *error)
{
    Cuda *cuda = cuda_of(backend);
    auto *host = reinterpret_cast<unsigned long long *>(cuda->bounce.pieces);
    cudaError_t e = cudaSuccess;
    if (shuf__memory_is_host(block->kind)) {
        *fingerprint =
            shuf__host_fingerprint(cuda->simd, cuda->threads, block->host, width, values, index);
        return SHUF_OK;
    }
    SHUF__STEP(e, "choosing the device", use_device(cuda));
    SHUF__STEP(e, "launching the fingerprint",
               fingerprint_async(block->memory, width, values, index, cuda->sm_count, cuda->sum,
                                 cuda->stream));
    SHUF__STEP(
        e, "copying the fingerprint",
        cudaMemcpyAsync(host, cuda->sum, sizeof *host, cudaMemcpyDeviceToHost, cuda->stream));
    SHUF__STEP(e, "computing the fingerprint", cudaStreamSynchronize(cuda->stream));
    *fingerprint = *host;
    return e == cudaSuccess ? SHUF_OK : error->status;
}

bool cuda_passes(const shuf__request *request)
{
    return request->kind == SHUF__STREAM ||
           (request->kind == SHUF__PERMUTATION && primefold_sums(request->permutation));
}

/* Queues the kernels of a pass. Sets the number of its partial sums. */
cudaError_t pass_async(Cuda *cuda, const shuf__request &request, Summary *summary)
{
    if (request.kind == SHUF__PERMUTATION)
        return primefold_sum_async(request.permutation, summary->index, cuda->sum, cuda->stream);
    const cudaError_t e = cudaMemsetAsync(cuda->sum, 0, sizeof *cuda->sum, cuda->stream);
    return e == cudaSuccess ? stream_async(request.stream, request.dtype, cuda->sm_count,
                                           {nullptr, nullptr, summary}, cuda->stream)
                            : e;
}

/* The sums that thread blocks have made, in order. */
shuf__sums add_parts(const shuf__sums *parts, int count)
{
    shuf__sums sums = parts[0];
    for (int i = 1; i < count; i++)
        shuf__sums_add(&sums, &parts[i]);
    return sums;
}

shuf_status cuda_pass(shuf__backend *backend, const shuf__computation *computation,
                      shuf__pass *pass, shuf__error *error)
{
    const shuf__request *request = &computation->request;
    Cuda *cuda = cuda_of(backend);
    auto *parts = reinterpret_cast<shuf__sums *>(cuda->bounce.pieces);
    auto *host = reinterpret_cast<unsigned long long *>(parts + sums_parts);
    static_assert((sums_parts + 1) * sizeof *parts <= bounce_piece, "the sums fit one piece");
    Summary summary = {
        pass->moments, pass->index, pass->centre, pass->scale, cuda->sum, cuda->sums, 0};
    cudaError_t e = cudaSuccess;
    float ms = 0;
    if (computation->cancelled && computation->cancelled(computation->cancel_context))
        return shuf__fail(error, SHUF_CANCELLED, "%s: cancelled", shuf__request_name(request));
    choose_stream(cuda, request);
    SHUF__STEP(e, "choosing the device", use_device(cuda));
    SHUF__STEP(e, "recording an event", cudaEventRecord(cuda->start, cuda->stream));
    SHUF__STEP(e, "launching the kernels", pass_async(cuda, *request, &summary));
    SHUF__STEP(e, "recording an event", cudaEventRecord(cuda->stop, cuda->stream));
    SHUF__STEP(
        e, "copying the fingerprint",
        cudaMemcpyAsync(host, cuda->sum, sizeof *host, cudaMemcpyDeviceToHost, cuda->stream));
    SHUF__STEP(e, "copying the sums",
               cudaMemcpyAsync(parts, cuda->sums,
                               static_cast<size_t>(summary.count) * sizeof *parts,
                               cudaMemcpyDeviceToHost, cuda->stream));
    SHUF__STEP(e, "computing the summary", cudaStreamSynchronize(cuda->stream));
    SHUF__STEP(e, "reading the time", cudaEventElapsedTime(&ms, cuda->start, cuda->stop));
    if (e != cudaSuccess)
        return error->status;
    pass->fingerprint = *host;
    if (summary.count)
        pass->sums = add_parts(parts, summary.count);
    pass->device_ns = static_cast<uint64_t>(static_cast<double>(ms) * 1e6);
    return SHUF_OK;
}

shuf_status cuda_sums(shuf__backend *backend, const shuf__block *block, shuf_dtype dtype,
                      uint64_t values, double centre, double scale, shuf__sums *sums,
                      shuf__error *error)
{
    Cuda *cuda = cuda_of(backend);
    auto *parts = reinterpret_cast<shuf__sums *>(cuda->bounce.pieces);
    static_assert(sums_parts * sizeof *parts <= bounce_piece, "the sums fit one piece");
    cudaError_t e = cudaSuccess;
    int count = 0;
    if (shuf__memory_is_host(block->kind)) {
        shuf__host_sums(cuda->threads, block->host, dtype, values, centre, scale, sums);
        return SHUF_OK;
    }
    SHUF__STEP(e, "choosing the device", use_device(cuda));
    SHUF__STEP(
        e, "launching the sums",
        sums_async(block->memory, dtype, values, centre, scale, cuda->sums, &count, cuda->stream));
    SHUF__STEP(e, "copying the sums",
               cudaMemcpyAsync(parts, cuda->sums, static_cast<size_t>(count) * sizeof *parts,
                               cudaMemcpyDeviceToHost, cuda->stream));
    SHUF__STEP(e, "computing the sums", cudaStreamSynchronize(cuda->stream));
    if (e != cudaSuccess)
        return error->status;
    *sums = add_parts(parts, count);
    return SHUF_OK;
}

shuf_status cuda_read(shuf__backend *backend, const shuf__block *block, uint64_t offset,
                      uint64_t bytes, void *out, shuf__error *error)
{
    Cuda *cuda = cuda_of(backend);
    const char *from = static_cast<const char *>(block->memory) + offset;
    Copy copy = {from, static_cast<char *>(out), bytes, 0, 0};
    cudaError_t e = cudaSuccess;
    bool taken = false;
    if (shuf__memory_is_host(block->kind)) {
        if (bytes)
            memcpy(out, from, bytes);
        return SHUF_OK;
    }
    SHUF__STEP(e, "choosing the device", use_device(cuda));
    while (e == cudaSuccess && !is_complete(copy))
        SHUF__STEP(e, "copying the result",
                   copy_piece(cuda->bounce, &copy, cuda->threads, cuda->stream, forever, &taken));
    return e == cudaSuccess ? SHUF_OK : error->status;
}

shuf_status cuda_write(shuf__backend *backend, shuf__block *block, uint64_t offset, uint64_t bytes,
                       const void *in, shuf__error *error)
{
    Cuda *cuda = cuda_of(backend);
    char *to = static_cast<char *>(block->memory) + offset;
    cudaError_t e = cudaSuccess;
    if (shuf__memory_is_host(block->kind)) {
        if (bytes)
            memcpy(to, in, bytes);
        return SHUF_OK;
    }
    SHUF__STEP(e, "choosing the device", use_device(cuda));
    SHUF__STEP(e, "copying to a buffer",
               cudaMemcpyAsync(to, in, bytes, cudaMemcpyHostToDevice, cuda->stream));
    SHUF__STEP(e, "copying to a buffer", cudaStreamSynchronize(cuda->stream));
    return e == cudaSuccess ? SHUF_OK : error->status;
}

shuf_status cuda_look_up(shuf__backend *backend, const shuf__computation *computation,
                         uint64_t *place, size_t count, shuf__error *error)
{
    const Cuda *cuda = cuda_of(backend);
    return shuf__host_look_up(cuda->simd, cuda->threads, computation, place, count, error);
}

} // namespace

cudaError_t use_device(const Cuda *cuda)
{
    static thread_local int chosen = -1;
    if (chosen == cuda->device)
        return cudaSuccess;
    cudaError_t e = cudaSetDevice(cuda->device);
    if (e == cudaSuccess)
        chosen = cuda->device;
    return e;
}

} // namespace shuf

static const shuf__rank_index_limits rank_index_limits = {
    .min_skip = shuf::tuning::min_skip,
    .min_gap = shuf::tuning::min_gap,
};

extern const shuf__backend_ops shuf__cuda_ops = {
    .name = "cuda",
    .makes = {true, true, true, true, true}, /* every kind */
    .own = SHUF__MEMORY_CUDA_FD,
    .quick = shuf::tuning::tile,
    .quick_row = 0,
    .small = shuf::tuning::small,
    .rank_index_limits = &rank_index_limits,
    .open = shuf::cuda_open,
    .close = shuf::cuda_close,
    .memory = shuf::cuda_memory,
    .alloc = shuf::cuda_alloc,
    .free = shuf::cuda_free,
    .export_block = shuf::cuda_export,
    .mapped = shuf__host_mapped,
    .committed = shuf__host_committed,
    .workspace = shuf::cuda_workspace,
    .launch = shuf::cuda_launch,
    .wait = shuf::cuda_wait,
    .event = shuf::cuda_event,
    .fingerprint = shuf::cuda_fingerprint,
    .passes = shuf::cuda_passes,
    .pass = shuf::cuda_pass,
    .sums = shuf::cuda_sums,
    .read = shuf::cuda_read,
    .write = shuf::cuda_write,
    .look_up = shuf::cuda_look_up,
};
