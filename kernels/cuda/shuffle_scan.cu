/* SPDX-License-Identifier: MIT
 *
 * Shuffles by philox24 and lcg: the scan of scan.cuh, with sinks that move the records. So the
 * indices need no memory. The method is Bijective2 of the paper (shuf/domain.h). The code extends
 * it to records of any size and to inverse shuffles.
 */
#include "shuffle.cuh"

#include "move.cuh"
#include "scan.cuh"

#include <algorithm>

namespace shuf
{

namespace
{

using tuning::items;
using tuning::tile;
constexpr uint32_t none = UINT32_MAX;

/* ---- The sinks ---- */

/* A sink for forward shuffles of records of one word. Each thread loads the records of its own
 * values. It issues all loads before it waits for the first one. */
template <typename Unit> struct Gather {
    using Dense = Gather;
    static constexpr bool in_rows = false, in_parts = false;
    const Unit *in;
    Unit *out;

    struct Prefetched {
        Unit unit[items];
    };

    static constexpr unsigned parts()
    {
        return 1;
    }

    template <typename Word>
    __device__ __forceinline__ void prefetch(const Word (&x)[items], Word n,
                                             Prefetched &prefetched) const
    {
#pragma unroll
        for (int i = 0; i < items; i++)
            prefetched.unit[i] = x[i] < n ? in[x[i]] : Unit{};
    }

    /* Marks in `rank` the values that are left out. So x need not stay in registers. */
    template <typename Word>
    __device__ __forceinline__ void stage(const Word (&x)[items], Word n,
                                          uint32_t (&rank)[items]) const
    {
#pragma unroll
        for (int i = 0; i < items; i++)
            rank[i] = x[i] < n ? rank[i] : none;
    }

    template <typename Word>
    __device__ __forceinline__ void emit(const Launch &, uint64_t, uint64_t position, uint32_t,
                                         const Word (&)[items], const uint32_t (&rank)[items],
                                         const Prefetched &prefetched) const
    {
        Unit *const here = out + position;
#pragma unroll
        for (int i = 0; i < items; i++)
            if (rank[i] != none)
                here[rank[i]] = prefetched.unit[i];
    }

    template <typename Word>
    __device__ __forceinline__ void emit_dense(const Launch &launch, uint64_t, uint64_t start,
                                               const Word (&x)[items]) const
    {
        Unit unit[items];
#pragma unroll
        for (int i = 0; i < items; i++)
            unit[i] = in[x[i]];
#pragma unroll
        for (int i = 0; i < items; i++)
            if (start + i * tuning::threads < launch.count)
                out[start + i * tuning::threads] = unit[i];
    }
};

/* A sink for any records, in both directions. Shared memory has the tile's values in order. These
 * are the list of indices for move(). Kernels with a bijection are long, so one kernel serves all
 * word sizes and both directions. */
struct Move {
    using Dense = Move;
    static constexpr bool in_rows = false, in_parts = true;
    Records records;

    struct Prefetched {
    };

    unsigned parts() const
    {
        return records.parts;
    }

    template <typename Word> static __device__ __forceinline__ Word *index()
    {
        __shared__ Word there[tile];
        return there;
    }

    template <typename Word>
    __device__ __forceinline__ void by_index(uint64_t first, uint32_t places) const
    {
        with_unit(records.unit, [&](auto unit) {
            move<decltype(unit)>(records, records.inverse, first, places, index<Word>());
        });
    }

    template <typename Word>
    __device__ __forceinline__ void prefetch(const Word (&)[items], Word, Prefetched &) const
    {
    }

    template <typename Word>
    __device__ __forceinline__ void stage(const Word (&x)[items], Word n,
                                          uint32_t (&rank)[items]) const
    {
#pragma unroll
        for (int i = 0; i < items; i++)
            if (x[i] < n)
                index<Word>()[rank[i]] = x[i];
    }

    template <typename Word>
    __device__ __forceinline__ void emit(const Launch &, uint64_t, uint64_t position, uint32_t kept,
                                         const Word (&)[items], const uint32_t (&)[items],
                                         const Prefetched &) const
    {
        by_index<Word>(position, kept);
    }

    template <typename Word>
    __device__ __forceinline__ void emit_dense(const Launch &launch, uint64_t, uint64_t start,
                                               const Word (&x)[items]) const
    {
        const uint64_t first = start - threadIdx.x, left = launch.count - first;
#pragma unroll
        for (int i = 0; i < items; i++)
            index<Word>()[threadIdx.x + i * tuning::threads] = x[i];
        __syncthreads();
        by_index<Word>(first, static_cast<uint32_t>(left < tile ? left : tile));
    }
};

/* ---- The choice of a kernel ---- */

/* Limits the number of blocks that share a tile if there are many tiles, because each of these
 * blocks evaluates the whole tile. */
Records few_parts(Records records)
{
    const uint64_t domain = uint64_t{1} << shuf_domain_bits(records.n);
    const uint64_t most = tuning::scan_blocks / ((domain + tile - 1) / tile);
    records.parts =
        static_cast<uint32_t>(std::max<uint64_t>(1, std::min<uint64_t>(records.parts, most)));
    return records;
}

/* 64-bit values, or words of more than 8 bytes, leave too few registers for Gather. */
template <typename Bijection, typename Unit>
constexpr bool has_room = sizeof(typename Bijection::Word) == 4 && sizeof(Unit) <= 8;

/* Runs one computation with its bijection. */
template <typename Bijection>
cudaError_t run(const Scratch &scratch, const shuf__computation &computation, Bijection f,
                const Records &records, cudaStream_t stream, bool *cancelled)
{
    cudaError_t e = cudaSuccess;
    bool done = false;
    if (!records.inverse && records.units == 1)
        with_unit(records.unit, [&](auto unit) {
            using Unit = decltype(unit);
            if constexpr (has_room<Bijection, Unit>) {
                const Gather<Unit> sink{static_cast<const Unit *>(records.in),
                                        static_cast<Unit *>(records.out)};
                e = scan::Run(scratch, computation, f, sink, stream).go(cancelled);
                done = true;
            }
        });
    return done ? e : scan::Run(scratch, computation, f, Move{records}, stream).go(cancelled);
}

} // namespace

cudaError_t scan_and_move(const Scratch &scratch, const shuf__computation &computation,
                          const void *in, void *out, cudaStream_t stream, bool *cancelled)
{
    const shuf__shuffle &s = computation.request.shuffle;
    const Records records = few_parts(make_records(s, in, out, tile));
    return scan::with_bijection(s.permutation, [&](auto f) {
        return run(scratch, computation, f, records, stream, cancelled);
    });
}

} // namespace shuf
