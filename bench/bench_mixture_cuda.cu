/* SPDX-License-Identifier: MIT
 *
 * Measures mixtures on the GPU: the time of 10^9 positions in device memory, by events, beside a
 * memset of the same bytes.
 */
#include "cuda/orders.cuh"
#include "report.h"

#include <cstdio>
#include <cstdlib>
#include <vector>

namespace
{

constexpr int samples = 9;
constexpr uint64_t positions = 1000000000;

[[noreturn]] void die(const char *text)
{
    fprintf(stderr, "bench_mixture_cuda: %s\n", text);
    exit(1);
}

void check(cudaError_t e)
{
    if (e != cudaSuccess)
        die(cudaGetErrorString(e));
}

struct Bench {
    report *out;
    uint64_t *index;
    cudaEvent_t start, stop;

    template <typename Work> void measure(const char *label, Work work)
    {
        double ns[samples];
        for (int i = -1; i < samples; i++) { /* the first is a warm-up */
            float ms = 0;
            check(cudaEventRecord(start));
            work();
            check(cudaEventRecord(stop));
            check(cudaEventSynchronize(stop));
            check(cudaEventElapsedTime(&ms, start, stop));
            if (i >= 0)
                ns[i] = ms * 1e6;
        }
        report_add(out, label, positions, positions, "positions", positions * sizeof *index, ns,
                   samples);
    }

    /* Source i has `records` * (i + 1) records and the weight i % 17 + 1. */
    void mixture(const char *label, size_t sources, uint64_t records)
    {
        std::vector<shuf__data_set> sets(sources);
        std::vector<uint64_t> weights(sources);
        shuf__mixture m{};
        shuf__error error{};
        const shuf__simd_ops *simd;
        void *scratch;
        for (size_t i = 0; i < sources; i++) {
            sets[i].records = records * (i + 1);
            weights[i] = i % 17 + 1;
        }
        const shuf__weights stage = {0, weights.data()};
        if (shuf__simd_choose(nullptr, &simd, &error) ||
            shuf__mixture_make(&m, simd, 7, 0, sets.data(), sources, &stage, 1, &error))
            die(error.text);
        check(cudaMalloc(&scratch, shuf::mixture_bytes(&m, positions)));
        measure(label, [&] {
            check(shuf::mixture_async(m, uint64_t{1} << 40, positions, index, scratch, nullptr));
        });
        check(cudaFree(scratch));
        shuf__mixture_free(&m);
    }
};

} // namespace

int main(int argc, char **argv)
{
    Bench bench{};
    cudaDeviceProp device;
    int version;
    char driver[32];
    bench.out = report_begin("mixtures on a GPU, device time", argc, argv);
    check(cudaGetDeviceProperties(&device, 0));
    check(cudaDriverGetVersion(&version));
    snprintf(driver, sizeof driver, "CUDA %d.%d", version / 1000, version % 1000 / 10);
    report_fact(bench.out, "device", device.name);
    report_fact(bench.out, "driver", driver);
    check(cudaMalloc(&bench.index, positions * sizeof *bench.index));
    check(cudaEventCreate(&bench.start));
    check(cudaEventCreate(&bench.stop));
    bench.measure("memset, u64",
                  [&] { check(cudaMemsetAsync(bench.index, 1, positions * sizeof(uint64_t))); });
    bench.mixture("1 source of 1e9", 1, 1000000000);
    bench.mixture("4 sources of 1e9 to 4e9", 4, 1000000000);
    bench.mixture("4 sources of 1e6 to 4e6", 4, 1000000);
    bench.mixture("64 sources of 1e6 to 6.4e7", 64, 1000000);
    bench.mixture("64 sources of 1000 to 64000", 64, 1000);
    bench.mixture("1000 sources of 1e6 to 1e9", 1000, 1000000);
    return report_end(bench.out);
}
