/* SPDX-License-Identifier: MIT
 *
 * Counts the words of a stream's tests on a GPU. The kernels of `signs` and `digits` are in other
 * files. A thread has the 32 values of a block in registers. A warp has the 32 blocks of a
 * superblock, and reads it in rows of 64 values. Before the cosine, a value becomes a phase: an
 * integer in units of 2^-32 turns. The code multiplies a phase by the number of the frequency,
 * which loses no digits. Products of cosines are floats, and so are sums over a few superblocks.
 */
#include "device.cuh"
#include "device_counts.cuh"

namespace quality
{

namespace
{

constexpr unsigned threads = 128, warps = threads / 32;
constexpr unsigned superblocks = 4; /* a warp sums so many before it adds to the common sums */

/* Returns to lane l the sum of x[l] over all lanes. */
template <unsigned HALF = 16> __device__ double transpose_sum(double (&x)[32])
{
    const bool upper = threadIdx.x & HALF;
#pragma unroll
    for (unsigned i = 0; i < HALF; i++) {
        const double mine = upper ? x[i + HALF] : x[i], other = upper ? x[i] : x[i + HALF];
        x[i] = mine + __shfl_xor_sync(~0U, other, HALF);
    }
    if constexpr (HALF > 1)
        return transpose_sum<HALF / 2>(x);
    else
        return x[0];
}

/* ---- Cosines ---- */

/* Does the same as multiply() in stream_cosines.c. `in` has COSETS * 2^LEFT products. */
template <unsigned COSETS, unsigned LEFT, unsigned CUBE>
__device__ void multiply(const float *in, float (&sum)[32])
{
    if constexpr (LEFT == 0) {
        float all = 0;
#pragma unroll
        for (unsigned i = 0; i < COSETS; i++)
            all += in[i];
        sum[CUBE] += all;
    } else {
        constexpr unsigned half = 1U << (LEFT - 1);
        float product[COSETS * half];
        multiply<2 * COSETS, LEFT - 1, CUBE>(in, sum);
#pragma unroll
        for (unsigned c = 0; c < COSETS; c++)
#pragma unroll
            for (unsigned i = 0; i < half; i++)
                product[c * half + i] = in[2 * c * half + i] * in[(2 * c + 1) * half + i];
        multiply<COSETS, LEFT - 1, CUBE | half>(product, sum);
    }
}

struct Frequency {
    float mean, scale; /* 0 and 1 for plain cosines */
};

/* blockIdx.x selects the frequency and the kind of cosines (centred or plain), in the order of the
 * words. Neighbouring blocks read the same values. */
template <typename T>
__global__ void __launch_bounds__(threads)
    cosine_kernel(const T *values, uint64_t count, double turns, const Frequency *frequencies,
                  double *words)
{
    const unsigned lane = threadIdx.x % 32;
    const uint64_t warp = uint64_t{blockIdx.y} * warps + threadIdx.x / 32;
    const auto multiple = static_cast<int32_t>(blockIdx.x / 2 + 1);
    const Frequency f = frequencies[blockIdx.x];
    float sum[32] = {};
#pragma unroll 1
    for (unsigned s = 0; s < superblocks; s++) {
        const uint64_t first = (warp * superblocks + s) * 1024;
        if (first >= count)
            break;
        float c[32];
        Values<T>::each(values + first, lane, [&](unsigned p, T x) {
            const auto phase =
                static_cast<int32_t>(static_cast<uint32_t>(__double2ll_rn(to_double(x) * turns)) *
                                     static_cast<uint32_t>(multiple));
            c[p] = (cospif(static_cast<float>(phase) * 0x1p-31f) - f.mean) * f.scale;
        });
        multiply<1, 5, 0>(c, sum);
    }
    double wide[32];
#pragma unroll
    for (unsigned i = 0; i < 32; i++)
        wide[i] = sum[i];
    const double all = transpose_sum(wide);
    atomicAdd(&words[32 * blockIdx.x + lane], all);
}

/* ---- Lattices ---- */

template <typename T>
__global__ void __launch_bounds__(threads)
    lattice_kernel(const T *values, uint64_t count, unsigned least, unsigned most,
                   unsigned long long *words)
{
    constexpr unsigned steps = 32, odds = SHUF__DEVICE_ODDS;
    __shared__ unsigned tally[steps * odds];
    const unsigned lane = threadIdx.x % 32;
    const uint64_t warp = uint64_t{blockIdx.x} * warps + threadIdx.x / 32;
    for (unsigned i = threadIdx.x; i < steps * odds; i += threads)
        tally[i] = 0;
    __syncthreads();
    for (uint64_t first = warp * 1024; first < count; first += uint64_t{gridDim.x} * warps * 1024) {
        double x[32];
        Values<T>::each(values + first, lane, [&](unsigned p, T v) { x[p] = to_double(v); });
        double scale = exp2(static_cast<double>(least));
        for (unsigned k = least; k <= most; k++, scale *= 2) {
            unsigned odd = 0;
#pragma unroll
            for (unsigned p = 0; p < 32; p++)
                odd += __double2loint(x[p] * scale + SHUF__HALF_WAY_UP + 0x1.8p52) & 1;
            atomicAdd(&tally[odds * (k - SHUF__DEVICE_LEAST_STEP) + odd], 1U);
        }
    }
    __syncthreads();
    for (unsigned i = threadIdx.x; i < steps * odds; i += threads)
        if (tally[i] != 0)
            atomicAdd(&words[i], static_cast<unsigned long long>(tally[i]));
}

/* ---- Norms ---- */

template <typename T>
__global__ void __launch_bounds__(threads)
    norm_kernel(const T *values, uint64_t count, double square_mean, double square_scale,
                double fourth_mean, double *words)
{
    const unsigned lane = threadIdx.x % 32;
    const uint64_t warp = uint64_t{blockIdx.x} * warps + threadIdx.x / 32;
    double sum[32] = {}, fourth_sum = 0;
    for (uint64_t first = warp * 1024; first < count; first += uint64_t{gridDim.x} * warps * 1024) {
        double x[32], fourths = 0, squares = 0;
        Values<T>::each(values + first, lane, [&](unsigned p, T v) {
            const double z = to_double(v), f = z * z * z * z - fourth_mean;
            x[p] = square_scale * (z * z - square_mean);
            fourths += f;
            squares += f * f;
        });
#pragma unroll
        for (unsigned step = 1; step < 32; step *= 2)
#pragma unroll
            for (unsigned p = 0; p < 32; p++)
                if (!(p & step)) {
                    const double a = x[p] + x[p + step], b = x[p] - x[p + step];
                    x[p] = a;
                    x[p + step] = b;
                }
#pragma unroll
        for (unsigned p = 0; p < 32; p++)
            sum[p] += x[p] * x[p];
        fourth_sum += fourths * fourths - squares;
    }
    const double all = transpose_sum(sum);
    atomicAdd(&words[lane], all);
    for (int step = 16; step > 0; step /= 2)
        fourth_sum += __shfl_down_sync(~0U, fourth_sum, step);
    if (lane == 0)
        atomicAdd(&words[32], fourth_sum);
}

/* ---- Ties ---- */

template <typename T>
__global__ void tie_kernel(const T *values, uint64_t count, unsigned digits,
                           unsigned long long *words)
{
    constexpr unsigned all = SHUF__DEVICE_TIES * SHUF__DEVICE_EXPONENTS;
    __shared__ unsigned tally[all];
    for (unsigned i = threadIdx.x; i < all; i += threads)
        tally[i] = 0;
    __syncthreads();
    for (uint64_t i = uint64_t{blockIdx.x} * threads + threadIdx.x; i < count;
         i += uint64_t{gridDim.x} * threads) {
        const auto bits = static_cast<uint64_t>(__double_as_longlong(to_double(values[i])));
        const int exponent =
            static_cast<int>(bits >> 52 & 2047) - 1023 - SHUF__DEVICE_LEAST_EXPONENT;
        const uint64_t rest = bits << 12 >> (65 - digits);
        if (exponent >= 0 && exponent < SHUF__DEVICE_EXPONENTS)
            atomicAdd(&tally[SHUF__DEVICE_TIES * exponent + (rest == 0  ? 0
                                                             : rest & 1 ? 1
                                                                        : 2)],
                      1U);
    }
    __syncthreads();
    for (unsigned i = threadIdx.x; i < all; i += threads)
        atomicAdd(&words[i], static_cast<unsigned long long>(tally[i]));
}

/* ---- All tests ---- */

template <typename T> class Stream
{
  public:
    Stream(const shuf__device_stream &stream, const void *values)
        : s_(stream), values_(static_cast<const T *>(values)),
          narrow_(static_cast<unsigned>(stream.count / 1024 / warps + 1))
    {
    }

    cudaError_t run()
    {
        cudaError_t e = cudaSuccess;
        if (s_.cosines)
            e = cosines();
        if (e == cudaSuccess && s_.odds)
            e = lattice();
        if (e == cudaSuccess && s_.norms)
            e = norms();
        if (e == cudaSuccess && s_.ties)
            e = ties();
        if (e == cudaSuccess && s_.signs)
            e = signs();
        if (e == cudaSuccess && s_.places)
            e = places();
        return e;
    }

  private:
    static constexpr unsigned most_blocks = 132 * 16;

    unsigned few(unsigned most = most_blocks) const
    {
        return narrow_ < most ? narrow_ : most;
    }

    cudaError_t cosines()
    {
        const unsigned ways = 2 * s_.frequencies;
        Memory<Frequency> frequencies;
        Memory<double> words;
        std::vector<Frequency> host(ways);
        for (unsigned k = 0; k < s_.frequencies; k++) {
            host[2 * k] = {static_cast<float>(s_.mean[k]), static_cast<float>(s_.scale[k])};
            host[2 * k + 1] = {0, 1};
        }
        cudaError_t e = frequencies.allocate(ways);
        if (e == cudaSuccess)
            e = frequencies.put(host.data());
        if (e == cudaSuccess)
            e = words.allocate(size_t{32} * ways);
        if (e != cudaSuccess)
            return e;
        constexpr double pi = 3.14159265358979323846;
        const dim3 grid(ways, narrow_ / superblocks + 1);
        cosine_kernel<<<grid, threads>>>(values_, s_.count, s_.frequency / (2 * pi) * 0x1p32,
                                         frequencies.at(), words.at());
        return add(words, s_.cosines, size_t{32} * ways);
    }

    cudaError_t lattice()
    {
        constexpr size_t all = 32 * SHUF__DEVICE_ODDS;
        Memory<unsigned long long> words;
        const cudaError_t e = words.allocate(all);
        if (e != cudaSuccess)
            return e;
        lattice_kernel<<<few(), threads>>>(values_, s_.count, s_.least_step, s_.most_step,
                                           words.at());
        return add(words, s_.odds,
                   SHUF__DEVICE_ODDS * (s_.most_step - SHUF__DEVICE_LEAST_STEP + 1));
    }

    cudaError_t norms()
    {
        Memory<double> words;
        double sums[SHUF__DEVICE_NORMS] = {};
        cudaError_t e = words.allocate(SHUF__DEVICE_NORMS);
        if (e != cudaSuccess)
            return e;
        norm_kernel<<<few(), threads>>>(values_, s_.count, s_.square_mean, s_.square_scale,
                                        s_.fourth_mean, words.at());
        e = add(words, sums, SHUF__DEVICE_NORMS);
        for (unsigned p = 0; p < SHUF__DEVICE_NORMS; p++)
            s_.norms[p] += p < 32 ? sums[p] : sums[p] / s_.fourth_variance;
        return e;
    }

    cudaError_t ties()
    {
        constexpr size_t all = SHUF__DEVICE_TIES * SHUF__DEVICE_EXPONENTS;
        Memory<unsigned long long> words;
        const cudaError_t e = words.allocate(all);
        if (e != cudaSuccess)
            return e;
        tie_kernel<<<few(), threads>>>(values_, s_.count, s_.digits, words.at());
        return add(words, s_.ties, all);
    }

    cudaError_t signs()
    {
        constexpr size_t all = size_t{SHUF__DEVICE_CELLS} * SHUF__DEVICE_SIGNS;
        Memory<unsigned long long> words;
        Memory<double> edges;
        cudaError_t e = words.allocate(all);
        if (e == cudaSuccess)
            e = edges.allocate(SHUF__DEVICE_CELLS + 1);
        if (e == cudaSuccess)
            e = edges.put(s_.edges);
        if (e != cudaSuccess)
            return e;
        sign_kernel<<<few(sign_blocks), sign_threads>>>(values_, s_.first, s_.count, s_.scale4,
                                                        s_.scale8, edges.at(), words.at());
        return add(words, s_.signs, all);
    }

    cudaError_t places()
    {
        if constexpr (sizeof(T) > 2) {
            constexpr size_t all = size_t{SHUF__DEVICE_RELATION} * SHUF__DEVICE_RELATIONS;
            constexpr unsigned of_type = sizeof(T) == 8 ? SHUF__DEVICE_PLACES : 3;
            Memory<unsigned long long> words;
            const cudaError_t e = words.allocate(all);
            if (e != cudaSuccess)
                return e;
            place_kernel<of_type>
                <<<few(place_blocks), place_threads>>>(values_, s_.count, words.at());
            return add(words, s_.places, all);
        }
        return cudaErrorInvalidValue;
    }

    template <typename W, typename To>
    static cudaError_t add(const Memory<W> &words, To *to, size_t count)
    {
        std::vector<W> host(words.size());
        cudaError_t e = cudaGetLastError();
        if (e == cudaSuccess)
            e = words.get(host.data());
        for (size_t i = 0; i < count && e == cudaSuccess; i++)
            to[i] += host[i];
        return e;
    }

    const shuf__device_stream &s_;
    const T *values_;
    unsigned narrow_;
};

} // namespace

} // namespace quality

extern "C" shuf_status shuf__device_count_stream(shuf__device *device,
                                                 const shuf__device_stream *stream,
                                                 shuf__error *error)
{
    const shuf_status status = quality::make(device, stream, error);
    if (status != SHUF_OK)
        return status;
    const void *values = device->values.memory;
    const cudaError_t e = quality::by_type(stream->dtype, [&](auto type) {
        return quality::Stream<decltype(type)>(*stream, values).run();
    });
    return quality::to_status(e, "counting", error);
}
