/* SPDX-License-Identifier: MIT
 *
 * Ways to transpose that need no local memory: all indices of registers are constants. A
 * build in which one of them uses it fails.
 */
#include "kernels.cuh"

namespace bench
{

namespace
{

/* Rows are one word longer than they need be, so that neither rows nor columns meet in a bank. */
struct Shared {
    template <int N, typename Word>
    static __device__ __forceinline__ void transpose(Word (&x)[N], unsigned lane)
    {
        __shared__ Word room[exchange_threads * (N + 1)];
        Word *const matrix = room + (threadIdx.x - lane) * (N + 1);
        __syncwarp();
#pragma unroll
        for (int i = 0; i < N; i++)
            matrix[lane * (N + 1) + i] = x[i];
        __syncwarp();
#pragma unroll
        for (int i = 0; i < N; i++)
            x[i] = matrix[i * (N + 1) + lane];
    }
};

/* The empty statement keeps the compiler from making selects of the branch that this is in. */
template <int N, typename Word>
__device__ __forceinline__ void swap_halves(Word (&x)[N], unsigned step)
{
#pragma unroll
    for (int i = 0; i < N; i++)
        if (!(i & step)) {
            const Word low = x[i];
            x[i] = x[i + step];
            x[i + step] = low;
        }
    asm volatile("");
}

/* Blocks of step x step trade places: the upper lanes bring what they give to where the lower
 * ones have it, and what they got to where it belongs. */
struct Branches {
    template <int N, typename Word>
    static __device__ __forceinline__ void transpose(Word (&x)[N], unsigned lane)
    {
#pragma unroll
        for (int step = 1; step < N; step *= 2) {
            if (lane & step)
                swap_halves(x, step);
#pragma unroll
            for (int i = 0; i < N; i++)
                if (i & step)
                    x[i] = __shfl_xor_sync(all_lanes, x[i], step);
            if (lane & step)
                swap_halves(x, step);
        }
    }
};

/* x[i] becomes x[i ^ lane], a bit of the lane at a time. */
template <int N, typename Word> __device__ __forceinline__ void permute(Word (&x)[N], unsigned lane)
{
#pragma unroll
    for (int step = 1; step < N; step *= 2) {
        Word y[N];
#pragma unroll
        for (int i = 0; i < N; i++)
            y[i] = lane & step ? x[i ^ step] : x[i];
#pragma unroll
        for (int i = 0; i < N; i++)
            x[i] = y[i];
    }
}

/* The word for lane ^ i goes to place i, from there to place i of that lane, and from there to
 * where it belongs: the fewest exchanges, N - 1, and 2 N log N selects. */
struct OutOfPlace {
    template <int N, typename Word>
    static __device__ __forceinline__ void transpose(Word (&x)[N], unsigned lane)
    {
        permute(x, lane);
#pragma unroll
        for (int i = 1; i < N; i++)
            x[i] = __shfl_xor_sync(all_lanes, x[i], i);
        permute(x, lane);
    }
};

/* Blocks trade places as with branches, a pair of registers at a time: N/2 log N exchanges, three
 * selects each. */
struct InPlace {
    template <int N, typename Word>
    static __device__ __forceinline__ void transpose(Word (&x)[N], unsigned lane)
    {
#pragma unroll
        for (int step = 1; step < N; step *= 2) {
            const bool upper = lane & step;
#pragma unroll
            for (int i = 0; i < N; i++)
                if (!(i & step)) {
                    const Word given = upper ? x[i] : x[i + step];
                    const Word got = __shfl_xor_sync(all_lanes, given, step);
                    x[i] = upper ? got : x[i];
                    x[i + step] = upper ? x[i + step] : got;
                }
        }
    }
};

constexpr char shared[] = "shared memory", branches[] = "branches",
               out_of_place[] = "selects, out of place", in_place[] = "selects, in place";

} // namespace

const Transposes register_transposes[16] = {
    transposes_of<4, Shared>(shared),
    transposes_of<8, Shared>(shared),
    transposes_of<16, Shared>(shared),
    transposes_of<32, Shared>(shared),
    transposes_of<4, Branches>(branches),
    transposes_of<8, Branches>(branches),
    transposes_of<16, Branches>(branches),
    transposes_of<32, Branches>(branches),
    transposes_of<4, OutOfPlace>(out_of_place),
    transposes_of<8, OutOfPlace>(out_of_place),
    transposes_of<16, OutOfPlace>(out_of_place),
    transposes_of<32, OutOfPlace>(out_of_place),
    transposes_of<4, InPlace>(in_place),
    transposes_of<8, InPlace>(in_place),
    transposes_of<16, InPlace>(in_place),
    transposes_of<32, InPlace>(in_place),
};

const Transforms register_transforms[4] = {
    transforms_of<Shared>(shared),
    transforms_of<Branches>(branches),
    transforms_of<OutOfPlace>(out_of_place),
    transforms_of<InPlace>(in_place),
};

} // namespace bench
