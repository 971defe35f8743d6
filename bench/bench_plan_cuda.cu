/* SPDX-License-Identifier: MIT
 *
 * Plans of exchanges on the GPU, device time for one rank. The number of ranks grows, and the rank
 * keeps its records, so n grows too. For few ranks each method is measured, and the daemon's choice
 * is marked. One-sided plans have one method. tuning::select_most and its neighbours come from
 * these rows. The peer is a copy of as many bytes as the kernels of the plan read and write by the
 * model below. Without sorts the kernels write the plan, and read nothing.
 */
#include "backend.h"
#include "cuda/exchange.cuh"
#include "cuda/tuning.cuh"
#include "device.cuh"
#include "timed.h"

#include <algorithm>
#include <string>

namespace
{

using bench::check;
using bench::die;
using bench::samples;
using bench::time_device;

constexpr uint64_t copied = uint64_t{2} << 30; /* bytes that the peer reads, and writes */

constexpr uint64_t selected = 32; /* the most ranks of a rank that selects its order */

struct Rank {
    uint64_t records, world;
    shuf_dtype dtype; /* AUTO: the smallest */
    bool inverse;
    uint64_t part; /* one-sided; 0: both sides */
};

constexpr uint64_t few = uint64_t{1} << 26, many = uint64_t{1} << 28;
constexpr Rank ranks[] = {
    {uint64_t{1} << 20, 1, SHUF_AUTO, false},
    {uint64_t{1} << 20, 4, SHUF_AUTO, false},
    {uint64_t{1} << 24, 4, SHUF_AUTO, false},
    {few, 4, SHUF_AUTO, false},
    {few, 8, SHUF_AUTO, false},
    {few, 16, SHUF_AUTO, false},
    {few, 24, SHUF_AUTO, false},
    {many, 1, SHUF_AUTO, false},
    {many, 2, SHUF_AUTO, false},
    {many, 4, SHUF_AUTO, false},
    {many, 7, SHUF_AUTO, false},
    {many, 8, SHUF_AUTO, false},
    {many, 16, SHUF_AUTO, false},
    {many, 24, SHUF_AUTO, false},
    {many, 32, SHUF_AUTO, false},
    {many, 64, SHUF_AUTO, false},
    {many, 1024, SHUF_AUTO, false},
    {many, 4, SHUF_AUTO, true},
    {many, 8, SHUF_AUTO, true},
    {many, 24, SHUF_AUTO, true},
    {many, 4, SHUF_U64, false},
    {many, 1024, SHUF_U64, false},
    {uint64_t{1} << 30, 1024, SHUF_AUTO, false},
    {uint64_t{1} << 20, 4, SHUF_AUTO, false, uint64_t{1} << 20},
    {uint64_t{1} << 24, 4, SHUF_AUTO, false, uint64_t{1} << 24},
    {few, 4, SHUF_AUTO, false, few},
    {many, 2, SHUF_AUTO, false, few},
    {many, 4, SHUF_AUTO, false, few},
    {many, 4, SHUF_AUTO, true, few},
    {many, 8, SHUF_AUTO, false, few},
    {many, 64, SHUF_AUTO, false, few},
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

uint64_t moved_bytes(const shuf__plan &plan, const shuf::Methods &methods, uint64_t width)
{
    /* number and window of the record; window twice and number; record and index */
    if (plan.part)
        return (4 + 2) + (2 + 2 + 4) + (4 + 4);
    const unsigned bits = bits_of(plan.permutation.n - 1);
    const uint64_t sorted = bits <= 32 ? bytes_by_keys(bits, width) : bytes_by_digits(bits, width);
    return (methods.selects_order ? width : sorted) +
           (methods.splits_places ? width : bytes_by_digits(bits_of(plan.world - 1), width));
}

shuf__computation computation_of(const Rank &rank)
{
    shuf__computation c{};
    shuf__error error;
    c.request.plan.permutation =
        timed_row(SHUF_ALGORITHM_PRIMEFOLD, rank.records * rank.world, 7, 0);
    c.request.plan.world = rank.world;
    c.request.plan.rank = rank.world / 2;
    c.request.plan.inverse = rank.inverse;
    c.request.plan.part = rank.part;
    if (shuf__exchange_make(&c.request, &error))
        die("plan", error.text);
    if (rank.dtype != SHUF_AUTO)
        c.request.dtype = rank.dtype;
    return c;
}

/* The daemon's choice has a star. */
std::string label_of(const Rank &rank, const shuf__plan &plan, const shuf::Methods &methods,
                     uint64_t width)
{
    if (plan.part)
        return "one-sided plan of one of " + std::to_string(rank.world) + " ranks" +
               (rank.inverse ? ", inverse" : "");
    const shuf::Methods best = shuf::exchange_methods(plan);
    const bool chosen =
        best.selects_order == methods.selects_order && best.splits_places == methods.splits_places;
    return "plan of one of " + std::to_string(rank.world) + " ranks" +
           (rank.inverse ? ", inverse, " : ", ") + std::to_string(8 * width) + " bits, order " +
           (methods.selects_order ? "selected" : "sorted") + ", places " +
           (methods.splits_places ? "split" : "sorted") + (chosen ? " *" : "");
}

struct Bench {
    report *out;
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

    /* Returns the bytes of the plan and of its workspace. */
    double time_plan(shuf__computation &c, const shuf::Methods &methods, double (&ns)[samples])
    {
        shuf__block workspace{};
        bool cancelled = false;
        void *plan;
        const uint64_t bytes = shuf__request_shape(&c.request).bytes;
        workspace.bytes = shuf::exchange_bytes(c.request, methods);
        check(cudaMalloc(&plan, bytes), "memory");
        check(cudaMalloc(&workspace.memory, workspace.bytes), "memory");
        c.workspace = &workspace;
        time_device("plan", ns, [&] {
            check(shuf::exchange_async(nullptr, c, methods, plan, nullptr, &cancelled), "plan");
        });
        check(cudaFree(workspace.memory), "memory");
        check(cudaFree(plan), "memory");
        c.workspace = nullptr;
        return static_cast<double>(bytes + workspace.bytes);
    }

    void row(const Rank &rank, const shuf::Methods &methods)
    {
        shuf__computation c = computation_of(rank);
        const uint64_t width = shuf__request_shape(&c.request).width, n = rank.records * rank.world;
        const uint64_t each = moved_bytes(c.request.plan, methods, width);
        const uint64_t moved = rank.records * each;
        double ns[samples];
        const double memory = time_plan(c, methods, ns);
        const std::string label = label_of(rank, c.request.plan, methods, width);
        report_add(out, label.c_str(), n, rank.records, "records", moved, ns, samples);
        report_value(out, (label + ": bytes moved for a record, by the model").c_str(), n,
                     static_cast<double>(each), "bytes");
        report_value(out, (label + ": memory for a record").c_str(), n,
                     memory / static_cast<double>(rank.records), "bytes");
        report_value(out, (label + ": a copy of the moved bytes takes").c_str(), n,
                     100 * static_cast<double>(moved) / copy_rate / ns[samples / 2], "%");
    }

    void rows(const Rank &rank)
    {
        if (rank.part)
            return row(rank, {});
        for (const bool selects : {true, false})
            for (const bool splits : {true, false})
                if ((!selects || rank.world <= selected) &&
                    (!splits || rank.world <= shuf::tuning::split_ranks))
                    row(rank, {selects, splits});
    }
};

} // namespace

int main(int argc, char **argv)
{
    Bench b{};
    b.out = report_begin("plans of exchanges on a GPU, device time", argc, argv);
    bench::say_device(b.out);
    b.measure_copy();
    for (const Rank &rank : ranks)
        b.rows(rank);
    return report_end(b.out);
}
