/* SPDX-License-Identifier: MIT
 *
 * Measures permutations on the GPU: device time, with the output in device memory. Peers in the
 * same run are thrust::shuffle_copy over a counting iterator (the paper's algorithm in Thrust) and
 * a memset of the same bytes. The peer of random look-ups is a copy of the same bytes. Small
 * computations are timed from call to return. With --cost, the program measures the cost against n
 * instead.
 */
#include "backend.h"
#include "cost.h"
#include "cuda/permute.cuh"
#include "report.h"
#include "timed.h"

#include <thrust/execution_policy.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/random.h>
#include <thrust/shuffle.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace
{

constexpr int samples = 9;
constexpr int small_samples = 20000;
constexpr uint64_t unit = SHUF__BLOCK_UNIT;

[[noreturn]] void die(const char *text)
{
    fprintf(stderr, "bench_permute_cuda: %s\n", text);
    exit(1);
}

void check(cudaError_t e)
{
    if (e != cudaSuccess)
        die(cudaGetErrorString(e));
}

struct Bench {
    report *out;
    shuf__backend *backend;
    cudaEvent_t start, stop;

    static shuf__computation timed(shuf_algorithm algorithm, uint64_t n, uint64_t rows)
    {
        shuf__computation computation = timed_permutation(algorithm, n, 7, 0);
        computation.request.permutation.rows = rows;
        return computation;
    }

    shuf__block alloc(uint64_t bytes)
    {
        shuf__block block;
        shuf__error error;
        if (backend->ops->alloc(backend, backend->ops->own, (bytes + unit - 1) / unit * unit,
                                &block, &error))
            die(error.text);
        return block;
    }

    void sample(const shuf__computation &computation, double (&ns)[samples])
    {
        shuf__error error;
        shuf__block block = alloc(shuf__request_shape(&computation.request).bytes);
        for (int i = -1; i < samples; i++) { /* the first is a warm-up */
            uint64_t took;
            if (shuf__backend_compute(backend, &computation, &block, &took, &error))
                die(error.text);
            if (i >= 0)
                ns[i] = static_cast<double>(took);
        }
        backend->ops->free(backend, &block);
    }

    void permute(const char *label, shuf_algorithm algorithm, uint64_t n, uint64_t rows = 1)
    {
        const shuf__computation computation = timed(algorithm, n, rows);
        double ns[samples];
        sample(computation, ns);
        report_add(out, label, n, rows * n, "values",
                   shuf__request_shape(&computation.request).bytes, ns, samples);
    }

    /* The fingerprint of a permutation, in one pass that stores no values. */
    void pass(const char *label, uint64_t n)
    {
        const shuf__computation computation = timed(SHUF_ALGORITHM_PRIMEFOLD, n, 1);
        shuf__error error;
        double ns[samples];
        for (int i = -1; i < samples; i++) {
            shuf__pass pass{};
            if (backend->ops->pass(backend, &computation, &pass, &error))
                die(error.text);
            if (i >= 0)
                ns[i] = static_cast<double>(pass.device_ns);
        }
        report_add(out, label, n, n, "values", 0, ns, samples);
    }

    /* A uniform (chunk 0) or windowed order of 10^9 values. */
    void order(const char *label, uint64_t chunk, uint64_t window, shuf_dtype dtype)
    {
        shuf__computation computation = timed(SHUF_ALGORITHM_PRIMEFOLD, 1000000000, 1);
        computation.request.permutation.chunk = chunk;
        computation.request.permutation.window = window;
        computation.request.dtype = dtype;
        double ns[samples];
        sample(computation, ns);
        report_add(out, label, 1000000000, 1000000000, "values",
                   shuf__request_shape(&computation.request).bytes, ns, samples);
    }

    void orders()
    {
        memset_of("memset, u32", 1000000000, 4000000000);
        memset_of("memset, u64", 1000000000, 8000000000);
        order("uniform, u32", 0, 0, SHUF_U32);
        order("uniform, u64", 0, 0, SHUF_U64);
        order("windows of 64 chunks of 1024, u32", 1024, 64, SHUF_U32);
        order("windows of 512 chunks of 4096, u32", 4096, 512, SHUF_U32);
        order("windows of 1000 chunks of 1000, u32", 1000, 1000, SHUF_U32);
        order("windows of 10 chunks of 1e6, u32", 1000000, 10, SHUF_U32);
        order("windows of 100 chunks of 100, u32", 100, 100, SHUF_U32);
        order("windows of 10 chunks of 100, u32", 100, 10, SHUF_U32);
        order("windows of 512 chunks of 4096, u64", 4096, 512, SHUF_U64);
    }

    /* Up to `quick` values, times are from call to return by the host's clock. Above, they are
     * device times by events. */
    int cost(const char *path)
    {
        struct cost *file = cost_begin(path);
        for (auto [algorithm, name] : {std::pair{SHUF_ALGORITHM_PRIMEFOLD, "primefold"},
                                       std::pair{SHUF_ALGORITHM_PHILOX24, "philox24"}}) {
            uint64_t n;
            for (unsigned i = 0; (n = cost_size(i)) != 0; i++) {
                double ns[samples];
                sample(timed(algorithm, n, 1), ns);
                std::sort(ns, ns + samples);
                cost_add(file, backend->device, name, n, n,
                         ns[samples / 2] / static_cast<double>(n));
            }
        }
        return cost_end(file);
    }

    /* The latency from call to return by the host's clock, as a part of the latency of a
     * request. */
    void small(const char *label, shuf_algorithm algorithm, uint64_t n)
    {
        static double ns[small_samples];
        shuf__error error;
        shuf__computation computation = timed(algorithm, n, 1);
        shuf__block block = alloc(shuf__request_shape(&computation.request).bytes);
        for (int i = -1; i < small_samples; i++) {
            uint64_t took;
            const auto begin = std::chrono::steady_clock::now();
            computation.request.permutation.epoch++;
            if (shuf__backend_compute(backend, &computation, &block, &took, &error))
                die(error.text);
            if (i >= 0)
                ns[i] = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() -
                                                                 begin)
                            .count();
        }
        backend->ops->free(backend, &block);
        report_latency(out, label, n, ns, small_samples);
    }

    template <typename Work> void device(const char *label, uint64_t n, uint64_t bytes, Work work)
    {
        void *memory;
        double ns[samples];
        check(cudaMalloc(&memory, bytes));
        for (int i = -1; i < samples; i++) {
            float ms;
            check(cudaEventRecord(start));
            work(memory);
            check(cudaEventRecord(stop));
            check(cudaEventSynchronize(stop));
            check(cudaEventElapsedTime(&ms, start, stop));
            if (i >= 0)
                ns[i] = ms * 1e6;
        }
        check(cudaFree(memory));
        report_add(out, label, n, n, "values", bytes, ns, samples);
    }

    void memset_of(const char *label, uint64_t n, uint64_t bytes)
    {
        device(label, n, bytes, [&](void *m) { check(cudaMemsetAsync(m, 1, bytes)); });
    }

    void peers(uint64_t n)
    {
        memset_of("memset", n, 4 * n);
        device("thrust::shuffle_copy", n, 4 * n, [&](void *m) {
            thrust::default_random_engine engine(7);
            thrust::counting_iterator<uint32_t> first(0);
            thrust::shuffle_copy(thrust::device, first, first + n, static_cast<uint32_t *>(m),
                                 engine);
        });
    }

    /* Looks up `count` random positions in device memory. The copy has the same number of bytes. */
    void look_ups(const char *label, const char *copy, uint64_t n, uint64_t count)
    {
        shuf__error error;
        shuf__computation computation = timed(SHUF_ALGORITHM_PHILOX24, n, 1);
        shuf__permutation &p = computation.request.permutation;
        p.count = count;
        const uint64_t bytes = shuf__request_shape(&computation.request).bytes;
        shuf__block at = alloc(bytes);
        uint64_t took;
        if (shuf__backend_compute(backend, &computation, &at, &took, &error))
            die(error.text);
        p.algorithm = SHUF_ALGORITHM_PRIMEFOLD;
        const shuf__look_up look_up = {p, false};
        const auto width = static_cast<unsigned>(bytes / count);
        device(label, count, bytes, [&](void *m) {
            check(shuf::primefold_look_up_async(look_up, width, at.memory, m, count, nullptr));
        });
        device(copy, count, bytes, [&](void *m) {
            check(cudaMemcpyAsync(m, at.memory, bytes, cudaMemcpyDeviceToDevice));
        });
        backend->ops->free(backend, &at);
    }
};

} // namespace

int main(int argc, char **argv)
{
    constexpr uint64_t sizes[] = {1000,
                                  (1u << 20) + 1,
                                  (1u << 24) + 1,
                                  uint64_t{1} << 29,
                                  (uint64_t{1} << 29) + 1,
                                  1000000000,
                                  uint64_t{1} << 30,
                                  (uint64_t{1} << 30) + 1};
    Bench bench{};
    shuf__error error;
    char driver[32];
    int version = 0;
    const char *cost = nullptr;
    const report_option options[] = {{"--cost", "FILE.csv", &cost}, {}};
    bench.out = report_begin_with("permute on a GPU, device time", options, argc, argv);
    if (shuf__backend_open("cuda", 0, &bench.backend, &error))
        die(error.text);
    check(cudaDriverGetVersion(&version));
    snprintf(driver, sizeof driver, "CUDA %d.%d", version / 1000, version % 1000 / 10);
    report_fact(bench.out, "device", bench.backend->device);
    report_fact(bench.out, "driver", driver);
    if (cost)
        return bench.cost(cost) | report_end(bench.out);
    check(cudaEventCreate(&bench.start));
    check(cudaEventCreate(&bench.stop));
    /* up to this n the backend records no events */
    const uint64_t quick = bench.backend->ops->quick;
    for (uint64_t n : sizes) {
        bench.permute(n > quick ? "primefold" : "primefold (host's clock)",
                      SHUF_ALGORITHM_PRIMEFOLD, n);
        bench.permute(n > quick ? "philox24" : "philox24 (host's clock)", SHUF_ALGORITHM_PHILOX24,
                      n);
        bench.permute(n > quick ? "lcg" : "lcg (host's clock)", SHUF_ALGORITHM_LCG, n);
        bench.peers(n);
    }
    bench.orders();
    const uint64_t wide = (uint64_t{1} << 33) + 1, batch = 100000000;
    const uint64_t full = uint64_t{1} << 32;
    bench.permute("primefold, u32", SHUF_ALGORITHM_PRIMEFOLD, full / 2);
    bench.permute("primefold, u32", SHUF_ALGORITHM_PRIMEFOLD, full);
    bench.memset_of("memset, u32", full, 4 * full);
    bench.permute("primefold, u64", SHUF_ALGORITHM_PRIMEFOLD, wide);
    bench.memset_of("memset, u64", wide, 8 * wide);
    for (uint64_t n : {uint64_t{1000000000}, uint64_t{1} << 30, full / 2, full, wide})
        bench.pass("primefold, fingerprint only", n);
    bench.permute("primefold, 1e6 epochs of 100", SHUF_ALGORITHM_PRIMEFOLD, 100, 1000000);
    bench.permute("primefold, 1e6 epochs of 101", SHUF_ALGORITHM_PRIMEFOLD, 101, 1000000);
    bench.permute("primefold, 1e7 epochs of 10", SHUF_ALGORITHM_PRIMEFOLD, 10, 10000000);
    bench.permute("primefold, 1e5 epochs of 1000", SHUF_ALGORITHM_PRIMEFOLD, 1000, 100000);
    bench.permute("primefold, 1000 epochs of 1e5", SHUF_ALGORITHM_PRIMEFOLD, 100000, 1000);
    bench.memset_of("memset, 1e8 values", batch, 4 * batch);
    bench.permute("primefold, 1000 epochs of 1e6", SHUF_ALGORITHM_PRIMEFOLD, 1000000, 1000);
    bench.look_ups("primefold, look-ups, u32", "copy, u32", 1000000000, 100000000);
    bench.look_ups("primefold, look-ups, u64", "copy, u64", wide, 100000000);
    bench.permute("philox24, u64", SHUF_ALGORITHM_PHILOX24, (uint64_t{1} << 32) + 1);
    bench.permute("philox24, 1000 epochs of 1e6", SHUF_ALGORITHM_PHILOX24, 1000000, 1000);
    bench.permute("philox24, 1e6 epochs of 100", SHUF_ALGORITHM_PHILOX24, 100, 1000000);
    for (uint64_t n : {uint64_t{10}, uint64_t{1000}, quick}) {
        bench.small("primefold, launch and wait", SHUF_ALGORITHM_PRIMEFOLD, n);
        bench.small("philox24, launch and wait", SHUF_ALGORITHM_PHILOX24, n);
        bench.small("lcg, launch and wait", SHUF_ALGORITHM_LCG, n);
    }
    bench.backend->ops->close(bench.backend);
    return report_end(bench.out);
}
