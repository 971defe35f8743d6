/* SPDX-License-Identifier: MIT
 *
 * Measures a matrix transposition in the registers of a warp. Each lane has one row. One method
 * uses shared memory. The others exchange registers between lanes. Which register a lane sends
 * depends on the lane, so these methods choose the register by an index at run time, by branches or
 * by selects. People often ask which is fastest:
 *
 *     forums.developer.nvidia.com/t/38652, /t/164045, /t/208418
 *
 * The first part times transpositions alone, from 4 x 4 to 32 x 32 words. The second part times
 * them in Fourier transforms of 256 points by 16 lanes, in registers alone and through memory. The
 * program checks results before it times them.
 */
#include "device.cuh"
#include "exchange_kernels.cuh"

#include <cmath>
#include <complex>
#include <string>
#include <vector>

namespace
{

using bench::check;
using bench::die;
using bench::exchange_threads;
using bench::fft_points;
using bench::samples;
using bench::time_device;

/* transpositions in one launch; even, so the output equals the input */
constexpr int times = 2000;
constexpr int fft_times = 400;     /* transforms in one launch; four in a row restore the input */
constexpr int fft_batch = 1 << 19; /* transforms in one launch through memory */
constexpr int fft_checked = 64;    /* number of transforms that are checked */
constexpr double fft_fault = 1e-5; /* largest error accepted; values are about 1 */
constexpr uint64_t room = uint64_t{fft_batch} * fft_points * sizeof(float2);

__host__ __device__ uint32_t word_at(uint64_t i)
{
    return static_cast<uint32_t>(i * 0x9E3779B97F4A7C15 >> 29);
}

__global__ void fill_words(uint32_t *out, uint64_t count)
{
    for (uint64_t i = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count;
         i += uint64_t{gridDim.x} * blockDim.x)
        out[i] = word_at(i);
}

/* A random number from -1 to 1. */
__global__ void fill_numbers(float *out, uint64_t count)
{
    for (uint64_t i = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count;
         i += uint64_t{gridDim.x} * blockDim.x)
        out[i] = static_cast<float>(static_cast<int32_t>(word_at(i))) * 0x1p-31f;
}

/* ---- The transposition by an index ---- */

/* The shortest one to write: each lane computes the index of the register to send. Registers cannot
 * be indexed at run time, so the compiler keeps the row in local memory. This file is compiled
 * without the options that forbid local memory. */
struct Indexed {
    template <int N, typename Word>
    static __device__ __forceinline__ void transpose(Word (&x)[N], unsigned lane)
    {
#pragma unroll
        for (unsigned i = 1; i < N; i++)
            x[lane ^ i] = __shfl_xor_sync(bench::all_lanes, x[lane ^ i], i);
    }
};

constexpr char indexed[] = "run-time index";

const bench::Transposes indexed_transposes[] = {
    bench::transposes_of<4, Indexed>(indexed),
    bench::transposes_of<8, Indexed>(indexed),
    bench::transposes_of<16, Indexed>(indexed),
    bench::transposes_of<32, Indexed>(indexed),
};

const bench::Transforms indexed_transforms[] = {bench::transforms_of<Indexed>(indexed)};

/* ---- Measurements ---- */

struct Bench {
    report *out;
    void *from, *to;
    int sm_count;

    /* Reports the resources of the kernel. Returns the number of blocks that the device runs at
     * once. */
    unsigned take(const char *label, const void *kernel, report_resources *resources)
    {
        cudaFuncAttributes a;
        int blocks;
        check(cudaFuncGetAttributes(&a, kernel), label);
        check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, exchange_threads, 0),
              label);
        *resources = {a.numRegs, static_cast<int>(a.localSizeBytes),
                      static_cast<int>(a.sharedSizeBytes), blocks * exchange_threads / 32};
        return static_cast<unsigned>(blocks * sm_count);
    }

    void launch(const char *label, const void *kernel, unsigned blocks, void **arguments)
    {
        check(cudaLaunchKernel(kernel, blocks, exchange_threads, arguments, 0, nullptr), label);
    }

    /* ---- Transpositions ---- */

    void transpose(const bench::Transposes &t, unsigned blocks, int count)
    {
        void *arguments[] = {&from, &to, &count};
        launch(t.method, t.kernel, blocks, arguments);
    }

    /* After an odd number of transpositions each matrix is the transpose of the input, else it
     * equals the input. */
    void check_words(const bench::Transposes &t, unsigned blocks, bool odd)
    {
        const uint64_t n = static_cast<uint64_t>(t.size);
        std::vector<uint32_t> words(uint64_t{blocks} * exchange_threads * n);
        check(cudaMemcpy(words.data(), to, words.size() * sizeof words[0], cudaMemcpyDeviceToHost),
              t.method);
        for (uint64_t i = 0; i < words.size(); i++) {
            const uint64_t first = i / (n * n) * (n * n), row = i % (n * n) / n, column = i % n;
            if (words[i] != word_at(odd ? first + column * n + row : i))
                die(t.method, "wrong output: a matrix is not the transpose of its input");
        }
    }

    void transposes(const bench::Transposes &t)
    {
        report_resources resources;
        double ns[samples];
        const unsigned blocks = take(t.method, t.kernel, &resources);
        const uint64_t words = uint64_t{blocks} * exchange_threads * static_cast<uint64_t>(t.size);
        if (words * sizeof(uint32_t) > room)
            die(t.method, "the buffers are too small for the threads of the device");
        transpose(t, blocks, 1);
        check_words(t, blocks, true);
        time_device(t.method, ns, [&] { transpose(t, blocks, times); });
        check_words(t, blocks, false);
        const std::string label = "transpose, " + std::string(t.method);
        report_kernel(out, label.c_str(), static_cast<uint64_t>(t.size), words * times, "words", ns,
                      samples, &resources);
    }

    /* ---- Fourier transforms ---- */

    void transform(const bench::Transforms &t, unsigned blocks, int batch, int count)
    {
        void *arguments[] = {&from, &to, &batch, &count};
        launch(t.method, t.kernel, blocks, arguments);
    }

    static std::complex<double> point_of(const std::vector<float2> &in, int k)
    {
        std::complex<double> sum = 0;
        for (int i = 0; i < fft_points; i++)
            sum += std::complex<double>(in[i].x, in[i].y) *
                   std::polar(1.0, -2 * M_PI * (i * k % fft_points) / fft_points);
        return sum / 16.0;
    }

    void check_points(const bench::Transforms &t)
    {
        std::vector<float2> in(fft_points), found(fft_points);
        const size_t bytes = fft_points * sizeof in[0];
        for (int i = 0; i < fft_checked; i++) {
            const uint64_t at =
                static_cast<uint64_t>(i) * (fft_batch - 1) / (fft_checked - 1) * fft_points;
            check(cudaMemcpy(in.data(), static_cast<float2 *>(from) + at, bytes,
                             cudaMemcpyDeviceToHost),
                  t.method);
            check(cudaMemcpy(found.data(), static_cast<float2 *>(to) + at, bytes,
                             cudaMemcpyDeviceToHost),
                  t.method);
            for (int k = 0; k < fft_points; k++)
                if (!(std::abs(point_of(in, k) - std::complex<double>(found[k].x, found[k].y)) <
                      fft_fault))
                    die(t.method, "wrong output of the Fourier transform");
        }
    }

    void transforms(const bench::Transforms &t)
    {
        const std::string method = t.method;
        report_resources resources;
        double ns[samples];
        const unsigned blocks = take(t.method, t.kernel, &resources);
        const int resident = static_cast<int>(blocks) * bench::fft_block;
        transform(t, blocks, fft_batch, 1);
        check_points(t);
        time_device(t.method, ns, [&] { transform(t, blocks, resident, fft_times); });
        report_kernel(out, ("FFT in registers, " + method).c_str(), fft_points,
                      uint64_t{fft_points} * static_cast<unsigned>(resident) * fft_times, "points",
                      ns, samples, &resources);
        time_device(t.method, ns, [&] { transform(t, blocks, fft_batch, 1); });
        report_kernel(out, ("FFT through memory, " + method).c_str(), fft_points,
                      uint64_t{fft_points} * fft_batch, "points", ns, samples, &resources);
    }

    void fill(bool words)
    {
        if (words)
            fill_words<<<1024, 256>>>(static_cast<uint32_t *>(from), room / sizeof(uint32_t));
        else
            fill_numbers<<<1024, 256>>>(static_cast<float *>(from), room / sizeof(float));
        check(cudaGetLastError(), "filling");
    }

    void all()
    {
        fill(true);
        for (const bench::Transposes &t : indexed_transposes)
            transposes(t);
        for (const bench::Transposes &t : bench::register_transposes)
            transposes(t);
        fill(false);
        for (const bench::Transforms &t : indexed_transforms)
            transforms(t);
        for (const bench::Transforms &t : bench::register_transforms)
            transforms(t);
    }
};

} // namespace

int main(int argc, char **argv)
{
    Bench b{};
    b.out = report_begin("matrices in the registers of a warp, transposed", argc, argv);
    b.sm_count = bench::say_device(b.out);
    check(cudaMalloc(&b.from, room), "memory");
    check(cudaMalloc(&b.to, room), "memory");
    b.all();
    check(cudaFree(b.to), "memory");
    check(cudaFree(b.from), "memory");
    return report_end(b.out);
}
