/* SPDX-License-Identifier: MIT
 *
 * The rows of bench_paper_cuda that do not use the backend. A row is made for its arrays, and
 * allocates all other memory. It then queues its work on the default stream, for one epoch after
 * the other.
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

/* Each item's index is thrown at a table of 2n places until it finds a free one. The indices in the
 * table's order are the permutation, which differs each time. */
Shuffle dart_throwing(const Arrays &arrays);

/* Items sorted by 64 random bits. */
Shuffle sort_shuffle(const Arrays &arrays);

/* thrust::shuffle, unchanged. */
Shuffle thrust_shuffle(const Arrays &arrays);

} // namespace bench

#endif
