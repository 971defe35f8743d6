/* SPDX-License-Identifier: MIT
 *
 * Moves the records of a tile of neighbouring places. The threads of a block move them together, in
 * the widest words that divide a record. A list in shared memory has the index of each record.
 */
#ifndef SHUF__CUDA_MOVE_CUH
#define SHUF__CUDA_MOVE_CUH

#include "backend.h"
#include "tuning.cuh"

#include <algorithm>

namespace shuf
{

/* The arrays of a shuffle. A record has `units` words of `unit` bytes. */
struct Records {
    const void *in;
    void *out;
    uint64_t n;
    uint32_t unit, units;
    uint32_t parts; /* number of blocks that share a tile; these have the same blockIdx.x */
    bool inverse;
};

/* Calls use(Unit{}), where Unit is a type of `bytes` bytes. */
#pragma nv_exec_check_disable
template <typename Use> __host__ __device__ __forceinline__ void with_unit(uint32_t bytes, Use use)
{
    switch (bytes) {
    case 1:
        return use(uint8_t{});
    case 2:
        return use(uint16_t{});
    case 4:
        return use(uint32_t{});
    case 8:
        return use(uint64_t{});
    default:
        return use(uint4{});
    }
}

/* Bytes of the widest word that divides a record. */
inline uint32_t unit_of(const shuf__shuffle &s)
{
    const uint64_t odd = s.record | sizeof(uint4);
    return static_cast<uint32_t>(odd & (~odd + 1));
}

/* `tile` is the number of places of a tile. If records are long, several blocks share a tile, at
 * most 2^15: a tile has at most 4096 places, a record is shorter than large_record (2^19 bytes),
 * and a block moves move_bytes (2^16 bytes). So their number fits the y dimension of a grid. */
inline Records make_records(const shuf__shuffle &s, const void *in, void *out, uint64_t tile)
{
    const uint64_t n = s.permutation.n;
    const uint64_t parts = std::min(tile, n) * s.record / tuning::move_bytes;
    return {in,
            out,
            n,
            unit_of(s),
            static_cast<uint32_t>(s.record / unit_of(s)),
            static_cast<uint32_t>(std::max<uint64_t>(parts, 1)),
            s.inverse};
}

/* Copies record index[k] of the input to record first + k of the output. With `inverse` it copies
 * record first + k to record index[k]. Each thread issues several loads before it stores: at most
 * Most, or at most 4 if words have 16 bytes. */
template <typename Unit, uint32_t Most = 8, typename Index>
__device__ __forceinline__ void move(const Records &r, bool inverse, uint64_t first,
                                     uint32_t places, const Index *index)
{
    constexpr uint32_t batch = sizeof(Unit) > 8 ? 4 : Most;
    const Unit *const in = static_cast<const Unit *>(r.in);
    Unit *const out = static_cast<Unit *>(r.out);
    const uint32_t total = places * r.units, share = (total + r.parts - 1) / r.parts;
    const uint32_t begin = blockIdx.y * share;
    const uint32_t end = begin + share < total ? begin + share : total;
    for (uint32_t t = begin + threadIdx.x; t < end; t += blockDim.x * batch) {
        Unit unit[batch];
        uint64_t to[batch];
#pragma unroll
        for (uint32_t b = 0; b < batch; b++) {
            const uint32_t at = t + b * blockDim.x;
            if (at >= end)
                break;
            const uint32_t k = r.units == 1 ? at : at / r.units;
            const uint32_t part = at - k * r.units;
            const uint64_t here = (first + k) * r.units + part;
            const uint64_t there = uint64_t{index[k]} * r.units + part;
            unit[b] = in[inverse ? here : there];
            to[b] = inverse ? there : here;
        }
#pragma unroll
        for (uint32_t b = 0; b < batch; b++)
            if (t + b * blockDim.x < end)
                out[to[b]] = unit[b];
    }
}

} // namespace shuf

#endif
