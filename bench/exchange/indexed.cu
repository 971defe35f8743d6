/* SPDX-License-Identifier: MIT
 *
 * The shortest transposition to write: each lane computes the index of the register to send.
 * Registers cannot be indexed at run time, so the compiler keeps the row in local memory. Only this
 * file is compiled without the options that forbid local memory.
 */
#include "kernels.cuh"

namespace bench
{

namespace
{

struct Indexed {
    template <int N, typename Word>
    static __device__ __forceinline__ void transpose(Word (&x)[N], unsigned lane)
    {
#pragma unroll
        for (unsigned i = 1; i < N; i++)
            x[lane ^ i] = __shfl_xor_sync(all_lanes, x[lane ^ i], i);
    }
};

constexpr char indexed[] = "run-time index";

} // namespace

const Transposes indexed_transposes[4] = {
    transposes_of<4, Indexed>(indexed),
    transposes_of<8, Indexed>(indexed),
    transposes_of<16, Indexed>(indexed),
    transposes_of<32, Indexed>(indexed),
};

const Transforms indexed_transforms[1] = {transforms_of<Indexed>(indexed)};

} // namespace bench
