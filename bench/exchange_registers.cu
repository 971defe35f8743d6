/* SPDX-License-Identifier: MIT
 *
 * Transpositions without local memory: every index of a register is a constant. The build fails if
 * one of them uses local memory.
 */
#include "exchange_kernels.cuh"

namespace bench
{

namespace
{

/* The padding of one word per row prevents bank conflicts in rows and in columns. */
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

/* With the empty asm statement, the compiler does not replace the caller's branch by selects. */
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

/* Swaps step x step blocks. All lanes must send from the same registers. So before the exchange,
 * the upper lanes move their words into the registers from which the lower lanes send. After it,
 * they move the received words to the right registers. */
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

/* Sets x[i] to x[i ^ lane], one bit of the lane at a time. */
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

/* Moves the word for lane ^ i to register i, sends it to register i of that lane, and moves it
 * there to its final register. It needs N - 1 exchanges, the minimum, and 2 N log N selects. */
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

/* Swaps the same blocks as Branches, one pair of registers at a time: N/2 log N exchanges with
 * three selects each. */
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
