/* SPDX-License-Identifier: MIT
 *
 * The rows of bench_paper_cuda that need nothing of the backend. Each is made for its arrays, with
 * all the memory that it needs besides, and is then work for the default stream, anew for each
 * epoch.
 */
#ifndef SHUF__BENCH_PAPER_ROWS_CUH
#define SHUF__BENCH_PAPER_ROWS_CUH

#include "paper_kernels.cuh"

#include <functional>

namespace bench
{

using Shuffle = std::function<void(uint64_t epoch)>;

/* VarPhilox: in separate passes; by a two-pass scan. */
Shuffle bijective0(const Arrays &arrays);
Shuffle bijective1(const Arrays &arrays);

/* Each item's index is thrown at a table of 2n places until it finds a free one; what stands there
 * then, in the table's order, is the permutation. It is another one each time. */
Shuffle dart_throwing(const Arrays &arrays);

/* Items sorted by 64 random bits. */
Shuffle sort_shuffle(const Arrays &arrays);

/* As it ships. */
Shuffle thrust_shuffle(const Arrays &arrays);

} // namespace bench

#endif
