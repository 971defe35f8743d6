/* SPDX-License-Identifier: MIT
 *
 * The CUDA backend: one device, one stream, results in device memory. All that
 * the vtable asks for except the kernels, which permute.cu has.
 */
#include "permute.cuh"

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

namespace
{

/* Bytes that freed results may leave in the driver's pool: a small request then
 * costs no trip to the driver, a large result is given back at once. */
constexpr uint64_t pool_keeps = 64 << 20;

constexpr size_t bounce_bytes = 256 << 10;

struct Cuda {
    shuf__backend base; /* first, so that one pointer serves for both */
    int device;
    int sm_count;
    cudaStream_t stream;
    cudaEvent_t start, stop;
    shuf::Scratch scratch;
    unsigned long long *sum; /* device memory */
    void *bounce;            /* pinned: what the driver can copy to at full speed */
};

Cuda *cuda_of(shuf__backend *backend)
{
    return reinterpret_cast<Cuda *>(backend);
}

shuf_status fail(shuf__error *error, cudaError_t e, const char *what)
{
    shuf_status status = e == cudaErrorMemoryAllocation ? SHUF_NO_MEMORY : SHUF_DEVICE;
    return shuf__fail(error, status, "cuda: %s: %s", what, cudaGetErrorString(e));
}

/* Runs the call unless an earlier one failed, and keeps the first failure. */
#define STEP(e, what, call)                                      \
    do {                                                         \
        if ((e) == cudaSuccess && ((e) = (call)) != cudaSuccess) \
            fail(error, (e), (what));                            \
    } while (0)

void format_uuid(const cudaUUID_t &uuid, char *text, size_t size)
{
    int at = snprintf(text, size, "GPU-");
    for (int i = 0; i < 16; i++)
        at +=
            snprintf(text + at, size - at, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x",
                     static_cast<unsigned char>(uuid.bytes[i]));
}

/* `name`: NULL for the first device, an ordinal, or GPU-<uuid>. */
shuf_status find_device(const char *name, int *device, cudaDeviceProp *properties,
                        shuf__error *error)
{
    int count = 0;
    cudaError_t e = cudaGetDeviceCount(&count);
    if (e == cudaErrorInsufficientDriver || e == cudaErrorNoDevice) /* so it says without any */
        return shuf__fail(error, SHUF_DEVICE,
                          "backend cuda: no NVIDIA GPU with a driver for CUDA %d.%d or later",
                          CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
    if (e != cudaSuccess)
        return fail(error, e, "counting devices");
    for (int i = 0; i < count; i++) {
        char uuid[64], ordinal[16];
        STEP(e, "reading a device's properties", cudaGetDeviceProperties(properties, i));
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
    cudaSetDevice(cuda->device);
    shuf::scratch_free(&cuda->scratch);
    cudaFree(cuda->sum);
    cudaFreeHost(cuda->bounce);
    if (cuda->start)
        cudaEventDestroy(cuda->start);
    if (cuda->stop)
        cudaEventDestroy(cuda->stop);
    if (cuda->stream)
        cudaStreamDestroy(cuda->stream);
    delete cuda;
}

cudaError_t acquire(Cuda *cuda, shuf__error *error)
{
    cudaError_t e = cudaSuccess;
    cudaMemPool_t pool = nullptr;
    uint64_t keeps = pool_keeps;
    STEP(e, "choosing the device", cudaSetDevice(cuda->device));
    STEP(e, "creating a stream", cudaStreamCreateWithFlags(&cuda->stream, cudaStreamNonBlocking));
    STEP(e, "creating an event", cudaEventCreate(&cuda->start));
    STEP(e, "creating an event", cudaEventCreate(&cuda->stop));
    STEP(e, "allocating scratch memory", shuf::scratch_make(&cuda->scratch));
    STEP(e, "allocating scratch memory", cudaMalloc(&cuda->sum, sizeof *cuda->sum));
    STEP(e, "allocating pinned memory", cudaMallocHost(&cuda->bounce, bounce_bytes));
    STEP(e, "finding the memory pool", cudaDeviceGetDefaultMemPool(&pool, cuda->device));
    STEP(e, "setting up the memory pool",
         cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keeps));
    return e;
}

shuf_status cuda_open(const char *device, unsigned threads, shuf__backend **backend,
                      shuf__error *error)
{
    (void)threads;
    int index = 0;
    cudaDeviceProp properties;
    if (find_device(device, &index, &properties, error))
        return error->status;
    Cuda *cuda = new (std::nothrow) Cuda{};
    if (!cuda)
        return shuf__fail(error, SHUF_NO_MEMORY, "backend cuda: out of memory");
    cuda->base.ops = &shuf__cuda_ops;
    cuda->device = index;
    cuda->sm_count = properties.multiProcessorCount;
    snprintf(cuda->base.device, sizeof cuda->base.device, "%.127s", properties.name);
    format_uuid(properties.uuid, cuda->base.device_id, sizeof cuda->base.device_id);
    if (acquire(cuda, error) != cudaSuccess) {
        cuda_close(&cuda->base);
        return error->status;
    }
    *backend = &cuda->base;
    return SHUF_OK;
}

/* What the driver has free, and what it keeps in the pool for us. */
shuf_status cuda_memory(shuf__backend *backend, uint64_t *available, uint64_t *total,
                        shuf__error *error)
{
    Cuda *cuda = cuda_of(backend);
    size_t free_bytes = 0, all_bytes = 0;
    uint64_t reserved = 0, used = 0;
    cudaMemPool_t pool = nullptr;
    cudaError_t e = cudaSuccess;
    STEP(e, "choosing the device", cudaSetDevice(cuda->device));
    STEP(e, "asking for free memory", cudaMemGetInfo(&free_bytes, &all_bytes));
    STEP(e, "finding the memory pool", cudaDeviceGetDefaultMemPool(&pool, cuda->device));
    STEP(e, "asking the memory pool",
         cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &reserved));
    STEP(e, "asking the memory pool",
         cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
    *available = free_bytes + (reserved - used);
    *total = all_bytes;
    return e == cudaSuccess ? SHUF_OK : error->status;
}

shuf_status cuda_alloc(shuf__backend *backend, uint64_t bytes, shuf__block *block,
                       shuf__error *error)
{
    Cuda *cuda = cuda_of(backend);
    void *memory = nullptr;
    *block = shuf__block{};
    if (bytes == 0)
        return SHUF_OK;
    cudaError_t e = cudaSetDevice(cuda->device);
    if (e == cudaSuccess)
        e = cudaMallocAsync(&memory, bytes, cuda->stream);
    if (e == cudaErrorMemoryAllocation) {
        uint64_t available, total;
        cudaGetLastError(); /* not sticky: the next call must not see it */
        if (cuda_memory(backend, &available, &total, error))
            return error->status;
        return shuf__fail(error, SHUF_NO_MEMORY,
                          "result of %" PRIu64 " bytes: %" PRIu64
                          " bytes of device memory are available",
                          bytes, available);
    }
    if (e != cudaSuccess)
        return fail(error, e, "allocating the result");
    block->memory = memory;
    block->bytes = bytes;
    return SHUF_OK;
}

void cuda_free(shuf__backend *backend, shuf__block *block)
{
    Cuda *cuda = cuda_of(backend);
    if (block->memory && cudaSetDevice(cuda->device) == cudaSuccess) {
        cudaFreeAsync(block->memory, cuda->stream);
        cudaStreamSynchronize(cuda->stream); /* the pool gives back at a synchronisation */
    }
    *block = shuf__block{};
}

shuf_status cuda_permute(shuf__backend *backend, const shuf__job *job, shuf__block *block,
                         uint64_t *device_ns, shuf__error *error)
{
    Cuda *cuda = cuda_of(backend);
    bool cancelled = false;
    float ms = 0;
    cudaError_t e = cudaSuccess;
    STEP(e, "choosing the device", cudaSetDevice(cuda->device));
    STEP(e, "recording an event", cudaEventRecord(cuda->start, cuda->stream));
    STEP(e, "launching permute",
         shuf::permute_async(cuda->scratch, *job, block->memory, cuda->stream, &cancelled));
    STEP(e, "recording an event", cudaEventRecord(cuda->stop, cuda->stream));
    STEP(e, "running permute", cudaEventSynchronize(cuda->stop));
    STEP(e, "reading the time", cudaEventElapsedTime(&ms, cuda->start, cuda->stop));
    if (e != cudaSuccess)
        return error->status;
    if (cancelled)
        return shuf__fail(error, SHUF_CANCELLED, "permute: cancelled");
    *device_ns = static_cast<uint64_t>(static_cast<double>(ms) * 1e6);
    return SHUF_OK;
}

shuf_status cuda_fingerprint(shuf__backend *backend, const shuf__block *block, unsigned width,
                             uint64_t values, uint64_t *fingerprint, shuf__error *error)
{
    Cuda *cuda = cuda_of(backend);
    unsigned long long *host = static_cast<unsigned long long *>(cuda->bounce);
    cudaError_t e = cudaSuccess;
    STEP(e, "choosing the device", cudaSetDevice(cuda->device));
    STEP(e, "launching the fingerprint",
         shuf::fingerprint_async(block->memory, width, values, cuda->sm_count, cuda->sum,
                                 cuda->stream));
    STEP(e, "copying the fingerprint",
         cudaMemcpyAsync(host, cuda->sum, sizeof *host, cudaMemcpyDeviceToHost, cuda->stream));
    STEP(e, "computing the fingerprint", cudaStreamSynchronize(cuda->stream));
    *fingerprint = *host;
    return e == cudaSuccess ? SHUF_OK : error->status;
}

shuf_status cuda_read(shuf__backend *backend, const shuf__block *block, uint64_t offset,
                      uint64_t bytes, void *out, shuf__error *error)
{
    Cuda *cuda = cuda_of(backend);
    const char *from = static_cast<const char *>(block->memory) + offset;
    cudaError_t e = cudaSuccess;
    STEP(e, "choosing the device", cudaSetDevice(cuda->device));
    for (uint64_t done = 0; done < bytes && e == cudaSuccess; done += bounce_bytes) {
        size_t part = bytes - done < bounce_bytes ? bytes - done : bounce_bytes;
        STEP(
            e, "copying the result",
            cudaMemcpyAsync(cuda->bounce, from + done, part, cudaMemcpyDeviceToHost, cuda->stream));
        STEP(e, "copying the result", cudaStreamSynchronize(cuda->stream));
        memcpy(static_cast<char *>(out) + done, cuda->bounce, part);
    }
    return e == cudaSuccess ? SHUF_OK : error->status;
}

} // namespace

extern const shuf__backend_ops shuf__cuda_ops = {
    "cuda",    cuda_open,    cuda_close,       cuda_memory, cuda_alloc,
    cuda_free, cuda_permute, cuda_fingerprint, cuda_read,
};
