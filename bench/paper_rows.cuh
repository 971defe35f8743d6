/* SPDX-License-Identifier: MIT
 *
 * The rows of bench_paper_cuda that do not use the backend. Each function allocates scratch memory
 * for its arrays. The Shuffle that it returns queues the work of one epoch on the default stream.
 */
#ifndef SHUF__BENCH_PAPER_ROWS_CUH
#define SHUF__BENCH_PAPER_ROWS_CUH

#include "paper_kernels.cuh"

#include <functional>

namespace bench
{

using Shuffle = std::function<void(uint64_t epoch)>;

/* VarPhilox, in separate passes and by a two-pass scan. */
Shuffle bijective0(const Arrays &arrays);
Shuffle bijective1(const Arrays &arrays);

/* Writes the index of each item to a random free place of a table with 2n places. The permutation
 * is the order of the indices in the table. It differs in each run. */
Shuffle dart_throwing(const Arrays &arrays);

/* Sorts the items by 64 random bits. */
Shuffle sort_shuffle(const Arrays &arrays);

/* thrust::shuffle, unchanged. */
Shuffle thrust_shuffle(const Arrays &arrays);

} // namespace bench

#endif
