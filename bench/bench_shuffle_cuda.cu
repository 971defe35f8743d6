/* SPDX-License-Identifier: MIT
 *
 * Shuffles on the GPU, device time, with records of many sizes in device memory: forward and
 * inverse. Peers are a copy of the same bytes and, for 8-byte records, a gather by indices in
 * memory and Thrust.
 */
#include "backend.h"
#include "device.cuh"
#include "timed.h"

#include <string>
#include <thrust/device_ptr.h>
#include <thrust/random.h>
#include <thrust/shuffle.h>

namespace
{

using bench::check;
using bench::die;
using bench::time_device;

constexpr uint64_t most = (uint64_t{4} << 30) + 4096; /* bytes of the largest input */

struct Size {
    uint64_t record, n;
};

/* Short runs need more samples, because a microsecond counts there. */
constexpr int few_samples = 9, many_samples = 101;
constexpr uint64_t small_bytes = 64 << 20;

struct Times {
    double ns[many_samples];
    int count;

    explicit Times(const Size &size)
        : ns{}, count(size.record * size.n < small_bytes ? many_samples : few_samples)
    {
    }
};

constexpr Size sizes[] = {
    {8, (1 << 8) + 1},     {8, (1 << 16) + 1},  {8, (1 << 20) + 1},   {8, (1 << 22) + 1},
    {8, (1 << 23) + 1},    {8, (1 << 24) + 1},  {8, (1 << 25) + 1},   {8, (1 << 26) + 1},
    {8, (1 << 29) + 1},    {1, (1 << 29) + 1},  {4, (1 << 29) + 1},   {12, (1 << 28) + 1},
    {16, (1 << 28) + 1},   {64, (1 << 26) + 1}, {256, (1 << 20) + 1}, {256, (1 << 24) + 1},
    {4096, (1 << 20) + 1}, {65536, 65536},      {100, 40000001},      {3, 1000000007},
};

__global__ void gather(const uint64_t *in, const uint32_t *index, uint64_t n, uint64_t *out)
{
    const uint64_t i = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = in[index[i]];
}

struct Bench {
    report *out;
    shuf__backend *backend;
    shuf__block in, to, index;

    /* Returns the median in nanoseconds. */
    double row(const char *label, const Size &size, Times &times)
    {
        const std::string name = std::string(label) + ", " + std::to_string(size.record) + " bytes";
        report_add(out, name.c_str(), size.n, size.n, "records", 2 * size.n * size.record, times.ns,
                   times.count);
        return times.ns[times.count / 2]; /* report_add() has sorted them */
    }

    double ours(const Size &size, shuf_algorithm algorithm, bool inverse)
    {
        const std::string name = algorithm == SHUF_ALGORITHM_PRIMEFOLD ? "primefold" : "philox24";
        shuf__computation computation = timed_shuffle(algorithm, size.n, 7, 0, size.record);
        shuf__error error;
        Times times(size);
        computation.request.shuffle.inverse = inverse;
        computation.input = &in;
        const bench::Workspace workspace(backend, &computation, to.kind);
        for (int i = -1; i < times.count; i++) { /* the first is a warm-up */
            uint64_t took;
            if (shuf__backend_compute(backend, &computation, &to, &took, &error))
                die("shuffle", error.text);
            if (i >= 0)
                times.ns[i] = static_cast<double>(took);
        }
        return row((inverse ? name + ", inverse" : name).c_str(), size, times);
    }

    double copy(const Size &size)
    {
        Times times(size);
        time_device("copy", times.ns, times.count, [&] {
            check(cudaMemcpyAsync(to.memory, in.memory, size.n * size.record,
                                  cudaMemcpyDeviceToDevice),
                  "copy");
        });
        return row("copy", size, times);
    }

    double gathered(const Size &size)
    {
        const shuf__computation computation =
            timed_permutation(SHUF_ALGORITHM_PRIMEFOLD, size.n, 0, 0);
        shuf__error error;
        uint64_t took;
        Times times(size);
        if (shuf__backend_compute(backend, &computation, &index, &took, &error))
            die("indices", error.text);
        time_device("gather", times.ns, times.count, [&] {
            gather<<<static_cast<unsigned>((size.n + 255) / 256), 256>>>(
                static_cast<const uint64_t *>(in.memory),
                static_cast<const uint32_t *>(index.memory), size.n,
                static_cast<uint64_t *>(to.memory));
        });
        return row("gather by indices in memory", size, times);
    }

    double thrust_row(const Size &size)
    {
        Times times(size);
        const thrust::device_ptr<uint64_t> from(static_cast<uint64_t *>(in.memory)),
            into(static_cast<uint64_t *>(to.memory));
        time_device("thrust", times.ns, times.count, [&] {
            thrust::shuffle_copy(from, from + static_cast<ptrdiff_t>(size.n), into,
                                 thrust::default_random_engine(7));
        });
        return row("thrust::shuffle_copy", size, times);
    }

    void ratio(const char *label, const Size &size, double ours_ns, double other_ns)
    {
        const std::string name = "records a second, as a part of " + std::string(label) + ", " +
                                 std::to_string(size.record) + " bytes";
        report_value(out, name.c_str(), size.n, 100 * other_ns / ours_ns, "%");
    }

    void compare(const Size &size)
    {
        const double there = ours(size, SHUF_ALGORITHM_PRIMEFOLD, false), copied = copy(size);
        ours(size, SHUF_ALGORITHM_PRIMEFOLD, true);
        ours(size, SHUF_ALGORITHM_PHILOX24, false);
        ours(size, SHUF_ALGORITHM_PHILOX24, true);
        if (size.record == 8) {
            const double by_index = gathered(size), by_thrust = thrust_row(size);
            ratio("the gather's", size, there, by_index);
            ratio("thrust's", size, there, by_thrust);
        }
        ratio("the copy's", size, there, copied);
    }
};

} // namespace

int main(int argc, char **argv)
{
    Bench b{};
    shuf__error error;
    b.out = report_begin("shuffles on a GPU, device time", argc, argv);
    bench::say_device(b.out);
    if (shuf__backend_open("cuda:0", 0, &b.backend, &error))
        die("backend", error.text);
    const auto *ops = b.backend->ops;
    const uint64_t bytes = (most + SHUF__BLOCK_UNIT - 1) / SHUF__BLOCK_UNIT * SHUF__BLOCK_UNIT;
    for (shuf__block *block : {&b.in, &b.to, &b.index})
        if (ops->alloc(b.backend, ops->own, bytes, block, &error))
            die("memory", error.text);
    for (const Size &size : sizes)
        b.compare(size);
    for (shuf__block *block : {&b.in, &b.to, &b.index})
        ops->free(b.backend, block);
    ops->close(b.backend);
    return report_end(b.out);
}
