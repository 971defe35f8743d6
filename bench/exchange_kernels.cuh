/* SPDX-License-Identifier: MIT
 *
 * Methods to transpose a matrix in the registers of neighbouring lanes, one row in each lane. Each
 * method and size has two kernels: one transposes, the other uses the transposition in a Fourier
 * transform. A Method is a struct with
 *     template <int N, typename Word> static void transpose(Word (&x)[N], unsigned lane);
 * On input, lane `lane` of N neighbours has row `lane`; on output, it has column `lane`.
 */
#ifndef SHUF__BENCH_EXCHANGE_KERNELS_CUH
#define SHUF__BENCH_EXCHANGE_KERNELS_CUH

#include <cuda_runtime.h>

#include <cstdint>

namespace bench
{

constexpr int exchange_threads = 128; /* threads of a block */
constexpr int fft_lanes = 16, fft_points = 256;
/* transforms that a block computes together */
constexpr int fft_block = exchange_threads / fft_lanes;

/* Kernels for matrices of size x size words, one row in each lane. They transpose the words of each
 * thread `times` times: void (const uint32_t *in, uint32_t *out, int times). The row of a thread
 * follows the row of the thread before. */
struct Transposes {
    const char *method;
    int size;
    const void *kernel;
};

/* Kernels for transforms of 256 complex points by 16 lanes, in natural order on input and output,
 * divided by 16. They compute `times` transforms of each of `batch` inputs, a multiple of
 * fft_block: void (const float2 *in, float2 *out, int batch, int times). */
struct Transforms {
    const char *method;
    const void *kernel;
};

/* From exchange_registers.cu. */
extern const Transposes register_transposes[16];
extern const Transforms register_transforms[4];

namespace
{

constexpr unsigned all_lanes = 0xffffffff;

template <int N, typename Method>
__global__ void __launch_bounds__(exchange_threads)
    transposes(const uint32_t *in, uint32_t *out, int times)
{
    const uint64_t at = (uint64_t{blockIdx.x} * exchange_threads + threadIdx.x) * N;
    uint32_t x[N];
#pragma unroll
    for (int i = 0; i < N; i++)
        x[i] = in[at + i];
#pragma unroll 1
    for (int i = 0; i < times; i++)
        Method::template transpose<N>(x, threadIdx.x % N);
#pragma unroll
    for (int i = 0; i < N; i++)
        out[at + i] = x[i];
}

/* ---- Fourier transform ---- */

/* Multiplies by e^(-2 pi i turn / 16), turn < 8. */
__device__ __forceinline__ void rotate(float &re, float &im, int turn)
{
    constexpr float cosine[8] = {
        1, 0.923879532511286756f,  0.707106781186547524f,  0.382683432365089772f,
        0, -0.382683432365089772f, -0.707106781186547524f, -0.923879532511286756f};
    const float old = re;
    if (turn == 0)
        return;
    if (turn == 4) {
        re = im;
        im = -old;
        return;
    }
    const float c = cosine[turn], s = turn < 4 ? cosine[4 - turn] : cosine[turn - 4];
    re = old * c + im * s;
    im = im * c - old * s;
}

/* Reverses the bits of p: the index of the result that the last butterfly leaves at p. */
__device__ __forceinline__ constexpr int reversed(int p)
{
    return (p & 1) << 3 | (p & 2) << 1 | (p & 4) >> 1 | (p & 8) >> 3;
}

/* The transform of a thread's 16 points. */
__device__ __forceinline__ void transform(float (&re)[16], float (&im)[16])
{
    float re_out[16], im_out[16];
#pragma unroll
    for (int half = 8; half >= 1; half /= 2)
#pragma unroll
        for (int p = 0; p < 16; p++)
            if (!(p & half)) {
                const float a = re[p], b = im[p];
                re[p] = a + re[p + half];
                im[p] = b + im[p + half];
                re[p + half] = a - re[p + half];
                im[p + half] = b - im[p + half];
                rotate(re[p + half], im[p + half], p % half * (8 / half));
            }
#pragma unroll
    for (int p = 0; p < 16; p++) {
        re_out[p] = re[reversed(p)];
        im_out[p] = im[reversed(p)];
    }
#pragma unroll
    for (int p = 0; p < 16; p++) {
        re[p] = re_out[p];
        im[p] = im_out[p];
    }
}

/* x[p] is point 16 p + lane, on input and output. The steps are 16-point transforms, the twiddle
 * factors, the transposition, and 16-point transforms again. */
template <typename Method>
__global__ void __launch_bounds__(exchange_threads)
    transforms(const float2 *in, float2 *out, int batch, int times)
{
    const int lane = threadIdx.x % fft_lanes;
    float cosine[16], sine[16];
#pragma unroll
    for (int p = 0; p < 16; p++) {
        sincospif(static_cast<float>(lane * p) / 128, &sine[p], &cosine[p]);
        sine[p] /= 16;
        cosine[p] /= 16;
    }
    for (int i = blockIdx.x * fft_block; i < batch; i += gridDim.x * fft_block) {
        const uint64_t at = uint64_t{fft_points} * (i + threadIdx.x / fft_lanes) + lane;
        float re[16], im[16];
#pragma unroll
        for (int p = 0; p < 16; p++) {
            const float2 z = in[at + 16 * p];
            re[p] = z.x;
            im[p] = z.y;
        }
#pragma unroll 1
        for (int t = 0; t < times; t++) {
            transform(re, im);
#pragma unroll
            for (int p = 0; p < 16; p++) {
                const float old = re[p];
                re[p] = old * cosine[p] + im[p] * sine[p];
                im[p] = im[p] * cosine[p] - old * sine[p];
            }
            Method::template transpose<16>(re, lane);
            Method::template transpose<16>(im, lane);
            transform(re, im);
        }
#pragma unroll
        for (int p = 0; p < 16; p++)
            out[at + 16 * p] = make_float2(re[p], im[p]);
    }
}

template <int N, typename Method> Transposes transposes_of(const char *method)
{
    return {method, N, reinterpret_cast<const void *>(transposes<N, Method>)};
}

template <typename Method> Transforms transforms_of(const char *method)
{
    return {method, reinterpret_cast<const void *>(transforms<Method>)};
}

} // namespace

} // namespace bench

#endif
