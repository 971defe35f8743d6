/* SPDX-License-Identifier: MIT
 *
 * Values of `primefold` at positions that are not neighbours. A thread looks up a group of them.
 */
#ifndef SHUF__CUDA_LOOK_UP_CUH
#define SHUF__CUDA_LOOK_UP_CUH

#include "fold_rows.cuh"

namespace shuf
{

/* Sets x[c] to the value at position[c] < n. */
template <typename Form, typename Position>
__device__ __forceinline__ void look_up_group(const Form &f, const Position (&position)[group],
                                              typename Form::Word (&x)[group])
{
    typename Form::Word y[1][group];
#pragma unroll
    for (int c = 0; c < group; c++)
        y[0][c] = f.first(f.start(f.row, position[c]));
    uint32_t met = 0;
    f.evaluate_unchecked(f.row, y, met);
    const uint32_t again = finished(f, met, y[0]) ? 0 : unfinished(f, met, y[0]);
#pragma unroll
    for (int c = 0; c < group; c++)
        x[c] = again >> c & 1 ? cycle_walk(f, f.row, position[c]) : y[0][c];
}

} // namespace shuf

#endif
