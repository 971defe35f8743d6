/* SPDX-License-Identifier: MIT
 *
 * Plans of exchanges on the GPU, device time for one rank. The number of ranks grows, and the rank
 * keeps its records, so n grows too. The peer is a copy of as many bytes as the kernels of the plan
 * read and write by the model below. For few ranks the kernels write the plan, and read nothing.
 */
#include "backend.h"
#include "cuda/exchange_few.cuh"
#include "device.cuh"
#include "timed.h"
#include "workspace.cuh"

#include <algorithm>
#include <string>

namespace
{

using bench::check;
using bench::die;
using bench::samples;
using bench::time_device;

constexpr uint64_t copied = uint64_t{2} << 30; /* bytes that the peer reads, and writes */

struct Rank {
    uint64_t records, world;
    shuf_dtype dtype; /* AUTO: the smallest */
};

constexpr Rank ranks[] = {
    {uint64_t{1} << 20, 1, SHUF_AUTO},    {uint64_t{1} << 20, 4, SHUF_AUTO},
    {uint64_t{1} << 24, 4, SHUF_AUTO},    {uint64_t{1} << 28, 1, SHUF_AUTO},
    {uint64_t{1} << 28, 2, SHUF_AUTO},    {uint64_t{1} << 28, 4, SHUF_AUTO},
    {uint64_t{1} << 28, 8, SHUF_AUTO},    {uint64_t{1} << 26, 15, SHUF_AUTO},
    {uint64_t{1} << 26, 17, SHUF_AUTO},   {uint64_t{1} << 28, 15, SHUF_AUTO},
    {uint64_t{1} << 28, 17, SHUF_AUTO},   {uint64_t{1} << 28, 64, SHUF_AUTO},
    {uint64_t{1} << 28, 1024, SHUF_AUTO}, {uint64_t{1} << 28, 4, SHUF_U64},
    {uint64_t{1} << 28, 1024, SHUF_U64},  {uint64_t{1} << 30, 1024, SHUF_AUTO},
};

unsigned bits_of(uint64_t largest)
{
    unsigned bits = 0;
    while (largest >> bits)
        bits++;
    return bits;
}

/* The bytes that the kernels read and write for a record's number, if the number is sorted by 16
 * bits of its key at a time. Each evaluation reads the number and writes 2 bytes. CUB then counts
 * the bytes of the keys, and moves key and number in a pass for each 8 bits. */
uint64_t bytes_by_digits(unsigned key_bits, uint64_t width)
{
    uint64_t bytes = width; /* the numbers from 0 on */
    for (unsigned shift = 0; shift < key_bits; shift += 16) {
        const unsigned passes = (std::min(key_bits - shift, 16u) + 7) / 8;
        bytes += (shift ? width : 0) + 2 + 2 + passes * 2 * (2 + width);
    }
    return bytes;
}

/* The same if keys of 4 bytes are sorted alone. */
uint64_t bytes_by_keys(unsigned key_bits, uint64_t width)
{
    return 4 + 4 + (key_bits + 7) / 8 * 2 * 4 + 4 + width;
}

uint64_t moved_bytes(const shuf__plan &plan, uint64_t width)
{
    const unsigned bits = bits_of(plan.permutation.n - 1);
    const uint64_t sorted = bits <= 32 ? bytes_by_keys(bits, width) : bytes_by_digits(bits, width);
    return (shuf::selects_order(plan) ? width : sorted) +
           (shuf::splits_places(plan) ? width : bytes_by_digits(bits_of(plan.world - 1), width));
}

shuf__computation computation_of(const Rank &rank)
{
    shuf__computation c{};
    shuf__error error;
    c.request.plan.permutation =
        timed_row(SHUF_ALGORITHM_PRIMEFOLD, rank.records * rank.world, 7, 0);
    c.request.plan.world = rank.world;
    c.request.plan.rank = rank.world / 2;
    if (shuf__exchange_make(&c.request, &error))
        die("plan", error.text);
    if (rank.dtype != SHUF_AUTO)
        c.request.dtype = rank.dtype;
    return c;
}

struct Bench {
    report *out;
    shuf__backend *backend;
    double copy_rate; /* bytes read and written in a nanosecond */

    void measure_copy()
    {
        void *from, *to;
        double ns[samples];
        check(cudaMalloc(&from, copied), "memory");
        check(cudaMalloc(&to, copied), "memory");
        time_device("copy", ns, [&] {
            check(cudaMemcpyAsync(to, from, copied, cudaMemcpyDeviceToDevice), "copy");
        });
        report_add(out, "copy", copied, copied, "bytes", 2 * copied, ns, samples);
        copy_rate = 2 * static_cast<double>(copied) / ns[samples / 2];
        check(cudaFree(to), "memory");
        check(cudaFree(from), "memory");
    }

    double time_plan(shuf__computation &c, double (&ns)[samples])
    {
        shuf__error error;
        shuf__block block;
        const auto *ops = backend->ops;
        const uint64_t bytes = shuf__request_shape(&c.request).bytes + SHUF__BLOCK_UNIT - 1;
        if (ops->alloc(backend, ops->own, bytes / SHUF__BLOCK_UNIT * SHUF__BLOCK_UNIT, &block,
                       &error))
            die("plan", error.text);
        const bench::Workspace workspace(backend, &c, block.kind);
        for (int i = -1; i < samples; i++) { /* the first is a warm-up */
            uint64_t took;
            if (shuf__backend_compute(backend, &c, &block, &took, &error))
                die("plan", error.text);
            if (i >= 0)
                ns[i] = static_cast<double>(took);
        }
        ops->free(backend, &block);
        return static_cast<double>(shuf__request_shape(&c.request).bytes +
                                   (c.workspace ? c.workspace->bytes : 0));
    }

    void row(const Rank &rank)
    {
        shuf__computation c = computation_of(rank);
        const uint64_t width = shuf__request_shape(&c.request).width, n = rank.records * rank.world;
        const uint64_t each = moved_bytes(c.request.plan, width), moved = rank.records * each;
        double ns[samples];
        const double memory = time_plan(c, ns);
        const std::string label = "plan of one of " + std::to_string(rank.world) + " ranks, " +
                                  std::to_string(8 * width) + " bits";
        report_add(out, label.c_str(), n, rank.records, "records", moved, ns, samples);
        report_value(out, (label + ": bytes moved for a record, by the model").c_str(), n,
                     static_cast<double>(each), "bytes");
        report_value(out, (label + ": memory for a record").c_str(), n,
                     memory / static_cast<double>(rank.records), "bytes");
        report_value(out, (label + ": a copy of the moved bytes takes").c_str(), n,
                     100 * static_cast<double>(moved) / copy_rate / ns[samples / 2], "%");
    }
};

} // namespace

int main(int argc, char **argv)
{
    Bench b{};
    shuf__error error;
    b.out = report_begin("plans of exchanges on a GPU, device time", argc, argv);
    bench::say_device(b.out);
    if (shuf__backend_open("cuda:0", 0, &b.backend, &error))
        die("backend", error.text);
    b.measure_copy();
    for (const Rank &rank : ranks)
        b.row(rank);
    b.backend->ops->close(b.backend);
    return report_end(b.out);
}
