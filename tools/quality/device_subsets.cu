/* SPDX-License-Identifier: MIT
 *
 * Products of centred cosines over all sets of 3, 4 and 5 positions, by a product of two matrices.
 * In both matrices a row is a block. The columns of the first are the pairs. The columns of the
 * second are single values, pairs and triples. The result is the first matrix, transposed, times
 * the second. cuBLAS multiplies, with factors rounded to 11 binary digits (TF32). This error is
 * small beside random variation. cuBLAS is loaded when it is needed, because a build does not
 * require it.
 */
#include "device.cuh"

#if __has_include(<cublas_v2.h>)
#include <cublas_v2.h>
#include <dlfcn.h>

namespace quality
{

namespace
{

constexpr unsigned pairs = SHUF__DEVICE_PAIRS, factors = SHUF__DEVICE_FACTORS;
constexpr unsigned singles = 32, blocks_at_once = 1 << 15, threads = 256;

struct Sets {
    uint8_t member[SHUF__DEVICE_FACTORS][3]; /* the positions of a factor; 32 means none */
};

Sets list_sets()
{
    Sets sets;
    unsigned k = 0;
    for (uint8_t p = 0; p < 32; p++, k++)
        sets.member[k][0] = p, sets.member[k][1] = sets.member[k][2] = 32;
    for (uint8_t p = 0; p < 32; p++)
        for (uint8_t q = p + 1; q < 32; q++, k++)
            sets.member[k][0] = p, sets.member[k][1] = q, sets.member[k][2] = 32;
    for (uint8_t p = 0; p < 32; p++)
        for (uint8_t q = p + 1; q < 32; q++)
            for (uint8_t r = q + 1; r < 32; r++, k++)
                sets.member[k][0] = p, sets.member[k][1] = q, sets.member[k][2] = r;
    return sets;
}

/* A thread block computes the products of one block of values: product[factors * block + k]. */
template <typename T>
__global__ void product_kernel(const T *values, double turns, float mean, float scale,
                               const Sets *sets, float *product)
{
    __shared__ float c[33];
    const uint64_t superblock = blockIdx.x / 32, lane = blockIdx.x % 32;
    if (threadIdx.x < 32) {
        const unsigned p = threadIdx.x;
        const T x = values[1024 * superblock + 64 * (p / 2) + 2 * lane + p % 2];
        const auto phase =
            static_cast<int32_t>(static_cast<uint32_t>(__double2ll_rn(to_double(x) * turns)));
        c[p] = (cospif(static_cast<float>(phase) * 0x1p-31f) - mean) * scale;
    } else if (threadIdx.x == 32)
        c[32] = 1;
    __syncthreads();
    float *to = product + size_t{factors} * blockIdx.x;
    for (unsigned k = threadIdx.x; k < factors; k += threads)
        to[k] = c[sets->member[k][0]] * c[sets->member[k][1]] * c[sets->member[k][2]];
}

__global__ void widen_kernel(const float *from, double *to, unsigned count)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        to[i] += from[i];
}

/* The functions of cuBLAS. */
class Blas
{
  public:
    ~Blas()
    {
        if (handle_)
            destroy_(handle_);
        if (library_)
            dlclose(library_);
    }

    shuf_status open(shuf__error *error)
    {
        for (const char *name : {"libcublas.so.13", "libcublas.so.12", "libcublas.so"})
            if (!library_)
                library_ = dlopen(name, RTLD_NOW | RTLD_LOCAL);
        if (!library_ || !find("cublasCreate_v2", create_) || !find("cublasDestroy_v2", destroy_) ||
            !find("cublasGemmEx", multiply_) || create_(&handle_) != CUBLAS_STATUS_SUCCESS)
            return shuf__fail(error, SHUF_DEVICE,
                              "--subsets: libcublas.so of CUDA 12 or 13 cannot be loaded; set "
                              "LD_LIBRARY_PATH");
        return SHUF_OK;
    }

    /* gram[pairs, factors] = sum over blocks of pair * factor, in column-major order. */
    bool multiply(const float *product, unsigned blocks, float *gram)
    {
        const float one = 1, none = 0;
        return multiply_(handle_, CUBLAS_OP_N, CUBLAS_OP_T, pairs, factors,
                         static_cast<int>(blocks), &one, product + singles, CUDA_R_32F, factors,
                         product, CUDA_R_32F, factors, &none, gram, CUDA_R_32F, pairs,
                         CUBLAS_COMPUTE_32F_FAST_TF32,
                         CUBLAS_GEMM_DEFAULT) == CUBLAS_STATUS_SUCCESS;
    }

  private:
    template <typename F> bool find(const char *name, F &function)
    {
        function = reinterpret_cast<F>(dlsym(library_, name));
        return function != nullptr;
    }

    void *library_ = nullptr;
    cublasHandle_t handle_ = nullptr;
    decltype(&cublasCreate_v2) create_ = nullptr;
    decltype(&cublasDestroy_v2) destroy_ = nullptr;
    cublasStatus_t (*multiply_)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int,
                                const void *, const void *, cudaDataType, int, const void *,
                                cudaDataType, int, const void *, void *, cudaDataType, int,
                                cublasComputeType_t, cublasGemmAlgo_t) = nullptr;
};

/* The library and the memory. They are kept for the next part of the stream, because the library
 * takes seconds to load. */
struct Room {
    Blas blas;
    Memory<Sets> sets;
    Memory<float> product, gram;
    Memory<double> sum;

    shuf_status open(shuf__error *error)
    {
        const Sets listed = list_sets();
        const size_t size = size_t{pairs} * factors;
        shuf_status status = blas.open(error);
        if (status == SHUF_OK)
            status = to_status(sets.allocate(1), "sets", error);
        if (status == SHUF_OK)
            status = to_status(sets.put(&listed), "sets", error);
        if (status == SHUF_OK)
            status =
                to_status(product.allocate(size_t{factors} * blocks_at_once), "products", error);
        if (status == SHUF_OK)
            status = to_status(gram.allocate(size), "sums", error);
        if (status == SHUF_OK)
            status = to_status(sum.allocate(size), "sums", error);
        return status;
    }
};

template <typename T>
cudaError_t add(Room &room, const T *values, uint64_t count, double t, double mean, double scale)
{
    constexpr double pi = 3.14159265358979323846;
    const uint64_t blocks = count / 32;
    const unsigned size = pairs * factors;
    for (uint64_t first = 0; first < blocks; first += blocks_at_once) {
        const auto some = static_cast<unsigned>(blocks - first < blocks_at_once ? blocks - first
                                                                                : blocks_at_once);
        product_kernel<<<some, threads>>>(values + 32 * first, t / (2 * pi) * 0x1p32,
                                          static_cast<float>(mean), static_cast<float>(scale),
                                          room.sets.at(), room.product.at());
        if (!room.blas.multiply(room.product.at(), some, room.gram.at()))
            return cudaErrorUnknown;
        widen_kernel<<<(size + threads - 1) / threads, threads>>>(room.gram.at(), room.sum.at(),
                                                                  size);
    }
    return cudaGetLastError();
}

} // namespace

} // namespace quality

extern "C" shuf_status shuf__device_count_subsets(shuf__device *device,
                                                  const shuf__device_stream *stream, double t,
                                                  double mean, double scale, double *gram,
                                                  shuf__error *error)
{
    static quality::Room *room; /* a process has only one device */
    shuf_status status = SHUF_OK;
    if (!room) {
        room = new quality::Room;
        status = room->open(error);
    }
    if (status == SHUF_OK)
        status = quality::to_status(room->sum.clear(), "sums", error);
    if (status == SHUF_OK)
        status = quality::make(device, stream, error);
    if (status != SHUF_OK)
        return status;
    const void *values = device->values.memory;
    cudaError_t e = quality::by_type(stream->dtype, [&](auto type) {
        return quality::add(*room, static_cast<const decltype(type) *>(values), stream->count, t,
                            mean, scale);
    });
    std::vector<double> sums(room->sum.size());
    if (e == cudaSuccess)
        e = room->sum.get(sums.data());
    for (size_t i = 0; i < sums.size() && e == cudaSuccess; i++)
        gram[i] += sums[i];
    return quality::to_status(e, "products", error);
}

#else

extern "C" shuf_status shuf__device_count_subsets(shuf__device *, const shuf__device_stream *,
                                                  double, double, double, double *,
                                                  shuf__error *error)
{
    return shuf__fail(error, SHUF_DEVICE, "--subsets: this build has no cublas_v2.h");
}

#endif
