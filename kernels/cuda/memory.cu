/* SPDX-License-Identifier: MIT
 *
 * Blocks of device memory. Each block is an allocation of its own. It is filled with zeros before
 * another process can see it. The functions of libcuda make the blocks that clients may map.
 */
#include "cuda.cuh"
#include "host/memory_limits.h"

#include <cinttypes>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace shuf
{

/* ---- Libcuda ---- */

/* Finds a function of libcuda through the runtime. From CUDA 12.5 on, the caller names the version
 * of the function. Before CUDA 12.5 the call has another name, and gives the version that belongs
 * to the runtime. The functions of the table are the same in all these versions. */
static cudaError_t entry_point(const char *symbol, unsigned version, void **function)
{
    *function = nullptr;
#if CUDART_VERSION >= 12050
    const cudaError_t e =
        cudaGetDriverEntryPointByVersion(symbol, function, version, cudaEnableDefault);
#else
    (void)version;
    const cudaError_t e = cudaGetDriverEntryPoint(symbol, function, cudaEnableDefault);
#endif
    return e == cudaSuccess && !*function ? cudaErrorSymbolNotFound : e;
}

shuf_status driver_find(Driver *driver, shuf__error *error)
{
    const struct {
        const char *symbol;
        unsigned version;
        void **function;
    } functions[] = {
#define X(symbol, name, version) {#symbol, version, reinterpret_cast<void **>(&driver->name)},
        SHUF__DRIVER_MAP(X)
#undef X
    };
    for (const auto &each : functions) {
        cudaError_t e = entry_point(each.symbol, each.version, each.function);
        if (e != cudaSuccess) {
            cudaGetLastError();
            return shuf__fail(error, SHUF_DEVICE, "cuda: %s in libcuda: %s", each.symbol,
                              cudaGetErrorString(e));
        }
    }
    return SHUF_OK;
}

shuf_status driver_fail(const Driver &driver, shuf__error *error, CUresult e, const char *step)
{
    const char *text = nullptr;
    shuf_status status = e == CUDA_ERROR_OUT_OF_MEMORY ? SHUF_NO_MEMORY : SHUF_DEVICE;
    if (driver.error_string(e, &text) != CUDA_SUCCESS || !text)
        text = "unknown error";
    return shuf__fail(error, status, "cuda: %s: %s", step, text);
}

namespace
{

/* ---- Any block ---- */

shuf_status refuse(Cuda *cuda, uint64_t bytes, shuf__error *error)
{
    uint64_t available, total;
    if (cuda_memory(&cuda->base, SHUF__MEMORY_CUDA_FD, &available, &total, error))
        return error->status;
    return shuf__fail(error, SHUF_NO_MEMORY,
                      "result of %" PRIu64 " bytes: %" PRIu64
                      " bytes of device memory are available",
                      bytes, available);
}

cudaError_t wipe(Cuda *cuda, void *memory, uint64_t bytes)
{
    cudaError_t e = cudaMemsetAsync(memory, 0, bytes, cuda->stream);
    return e == cudaSuccess ? cudaStreamSynchronize(cuda->stream) : e;
}

/* ---- CUDA_FD ---- */

CUresult map_at(const Cuda *cuda, CUdeviceptr at, uint64_t bytes,
                CUmemGenericAllocationHandle handle, const CUmemLocation &where)
{
    CUmemAccessDesc access{};
    access.location = where;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    CUresult e = cuda->driver.map(at, bytes, 0, handle, 0);
    if (e == CUDA_SUCCESS && (e = cuda->driver.set_access(at, bytes, &access, 1)) != CUDA_SUCCESS)
        cuda->driver.unmap(at, bytes);
    return e;
}

CUresult map(const Cuda *cuda, CUmemGenericAllocationHandle handle, const CUmemLocation &where,
             uint64_t bytes, CUdeviceptr *at)
{
    CUresult e = cuda->driver.reserve(at, bytes, 0, 0, 0);
    if (e == CUDA_SUCCESS && (e = map_at(cuda, *at, bytes, handle, where)) != CUDA_SUCCESS)
        cuda->driver.unreserve(*at, bytes);
    return e;
}

void unmap(const Cuda *cuda, CUdeviceptr at, uint64_t bytes)
{
    cuda->driver.unmap(at, bytes);
    cuda->driver.unreserve(at, bytes);
}

CUresult map_and_export(const Cuda *cuda, CUmemGenericAllocationHandle handle,
                        const CUmemAllocationProp &properties, uint64_t bytes, shuf__block *block)
{
    CUdeviceptr at = 0;
    int fd = -1;
    CUresult e = map(cuda, handle, properties.location, bytes, &at);
    if (e != CUDA_SUCCESS)
        return e;
    e = cuda->driver.export_to_handle(&fd, handle, properties.requestedHandleTypes, 0);
    if (e != CUDA_SUCCESS) {
        unmap(cuda, at, bytes);
        return e;
    }
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    block->fd = fd;
    block->memory = reinterpret_cast<void *>(at);
    return CUDA_SUCCESS;
}

/* Makes a CUDA_FD block. It releases the handle at the end, because the mapping and the descriptor
 * keep the memory. */
shuf_status make_fd(Cuda *cuda, uint64_t bytes, shuf__block *block, shuf__error *error)
{
    CUmemAllocationProp properties{};
    CUmemGenericAllocationHandle handle = 0;
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location.id = cuda->device;
    CUresult e = cuda->driver.create(&handle, bytes, &properties, 0);
    if (e == CUDA_SUCCESS) {
        e = map_and_export(cuda, handle, properties, bytes, block);
        cuda->driver.release(handle);
    }
    if (e == CUDA_ERROR_OUT_OF_MEMORY)
        return refuse(cuda, bytes, error);
    if (e != CUDA_SUCCESS)
        return driver_fail(cuda->driver, error, e, "allocating memory to be shared");
    return SHUF_OK;
}

void unmake_fd(Cuda *cuda, shuf__block *block)
{
    unmap(cuda, reinterpret_cast<CUdeviceptr>(block->memory), block->bytes);
    close(block->fd);
}

/* ---- CUDA_PRIVATE and CUDA_IPC ---- */

shuf_status make_private(Cuda *cuda, uint64_t bytes, shuf__block *block, shuf__error *error)
{
    const cudaError_t e = cudaMalloc(&block->memory, bytes);
    if (e == cudaErrorMemoryAllocation) {
        cudaGetLastError(); /* clears the error, because the next call would report it */
        return refuse(cuda, bytes, error);
    }
    return e == cudaSuccess ? SHUF_OK : fail(error, e, "allocating memory");
}

shuf_status make_ipc(Cuda *cuda, uint64_t bytes, shuf__block *block, shuf__error *error)
{
    cudaIpcMemHandle_t handle;
    static_assert(sizeof handle == sizeof block->ipc, "the size of a handle in backend.h");
    if (make_private(cuda, bytes, block, error))
        return error->status;
    const cudaError_t e = cudaIpcGetMemHandle(&handle, block->memory);
    if (e != cudaSuccess) {
        fail(error, e, "making the result shareable");
        cudaFree(block->memory);
        return error->status;
    }
    memcpy(block->ipc, &handle, sizeof handle);
    return SHUF_OK;
}

void unmake_malloced(Cuda *cuda, shuf__block *block)
{
    (void)cuda;
    cudaFree(block->memory);
}

/* ---- All kinds ---- */

const struct {
    shuf_status (*make)(Cuda *cuda, uint64_t bytes, shuf__block *block, shuf__error *error);
    void (*unmake)(Cuda *cuda, shuf__block *block);
} kinds[SHUF__MEMORY_KINDS] = {
    {nullptr, nullptr}, /* MEMFD and PRIVATE are host memory */
    {nullptr, nullptr},          {make_fd, unmake_fd},
    {make_ipc, unmake_malloced}, {make_private, unmake_malloced},
};
static_assert(SHUF__MEMORY_CUDA_FD == 2 && SHUF__MEMORY_CUDA_IPC == 3 &&
                  SHUF__MEMORY_CUDA_PRIVATE == 4,
              "the order of the table");

/* Makes a block. Refuses sizes above the free memory before it calls the driver, because for very
 * large sizes the driver reports other errors. */
shuf_status make(Cuda *cuda, uint64_t bytes, shuf__block *block, shuf__error *error)
{
    uint64_t available, total;
    if (cuda_memory(&cuda->base, block->kind, &available, &total, error))
        return error->status;
    if (bytes > available)
        return refuse(cuda, bytes, error);
    return kinds[block->kind].make(cuda, bytes, block, error);
}

} // namespace

shuf_status cuda_memory(shuf__backend *backend, shuf__memory kind, uint64_t *available,
                        uint64_t *total, shuf__error *error)
{
    size_t free_bytes = 0, all_bytes = 0;
    cudaError_t e = cudaSuccess;
    if (shuf__memory_is_host(kind))
        return shuf__host_memory(available, total, error);
    SHUF__STEP(e, "choosing the device", use_device(cuda_of(backend)));
    SHUF__STEP(e, "asking for free memory", cudaMemGetInfo(&free_bytes, &all_bytes));
    *available = free_bytes;
    *total = all_bytes;
    return e == cudaSuccess ? SHUF_OK : error->status;
}

shuf_status cuda_alloc(shuf__backend *backend, shuf__memory kind, uint64_t bytes,
                       shuf__block *block, shuf__error *error)
{
    Cuda *cuda = cuda_of(backend);
    cudaError_t e = cudaSuccess;
    if (shuf__memory_is_host(kind))
        return shuf__host_alloc(kind, bytes, block, error);
    *block = shuf__block{};
    block->kind = kind;
    block->fd = -1;
    if (bytes == 0)
        return SHUF_OK;
    if (make(cuda, bytes, block, error)) {
        block->memory = nullptr;
        return error->status;
    }
    block->bytes = bytes;
    SHUF__STEP(e, "wiping the result's memory", wipe(cuda, block->memory, bytes));
    if (e == cudaSuccess)
        return SHUF_OK;
    cuda_free(backend, block);
    return error->status;
}

/* A launch may still use the block, and cuMemUnmap() does not wait for it. So this function waits.
 */
void cuda_free(shuf__backend *backend, shuf__block *block)
{
    Cuda *cuda = cuda_of(backend);
    if (shuf__memory_is_host(block->kind)) {
        shuf__host_free(block);
        return;
    }
    if (use_device(cuda) == cudaSuccess)
        cudaStreamSynchronize(cuda->stream);
    if (block->detail[0])
        cudaEventDestroy(reinterpret_cast<cudaEvent_t>(block->detail[0]));
    if (block->memory)
        kinds[block->kind].unmake(cuda, block);
    cudaGetLastError();
    *block = shuf__block{};
    block->fd = -1;
}

int cuda_export(const shuf__block *block)
{
    return shuf__memory_is_host(block->kind) ? shuf__host_export(block)
                                             : fcntl(block->fd, F_DUPFD_CLOEXEC, 0);
}

} // namespace shuf
