/* SPDX-License-Identifier: MIT
 *
 * The paper's bijective shuffles of u64 items on a GPU, and a check of any shuffle. Bijective2 is
 * in the backend. All functions queue work on the default stream. n <= 2^30, so that all numbers
 * fit 32 bits.
 */
#ifndef SHUF__BENCH_PAPER_KERNELS_CUH
#define SHUF__BENCH_PAPER_KERNELS_CUH

#include "shuf/algorithm.h"

#include <cuda_runtime.h>

#include <cstdint>

namespace bench
{

/* Device memory of a shuffle by a permutation of docs/spec.md. */
struct Arrays {
    const uint64_t *in;
    uint64_t *out;
    uint64_t n;
};

/* The number of tiles of the domain: the length of arrays with an element for each tile. */
uint64_t tiles_of(uint64_t n);
/* The size of the domain: 2^B. */
uint64_t domain_of(uint64_t n);

/* The passes of Bijective0: evaluate f(x) of the whole domain and whether it is kept; and, after a
 * scan of `kept`, move each item to its place. */
cudaError_t evaluate_async(uint64_t n, uint64_t epoch, uint32_t *values, uint32_t *kept);
cudaError_t compact_async(const Arrays &arrays, const uint32_t *values, const uint32_t *kept,
                          const uint32_t *places);

/* The passes of Bijective1: count the kept values of each tile; and, after a scan of the counts,
 * evaluate f(x) again and move the items. */
cudaError_t count_async(uint64_t n, uint64_t epoch, uint32_t *counts);
cudaError_t place_async(const Arrays &arrays, uint64_t epoch, const uint32_t *places);

cudaError_t gather_async(const Arrays &arrays, const uint32_t *index);

/* items[i] = paper_item(i) */
cudaError_t fill_async(uint64_t *items, uint64_t count);

/* Adds to *wrong the number of items of `out` that are not in the input or are repeated. `seen` has
 * a bit for each of n items, all 0. */
cudaError_t check_all_async(const Arrays &arrays, uint32_t *seen, unsigned long long *wrong);

/* Checks the order of a permutation by philox24 or lcg. The inverse of the inline algorithm gives
 * the x of each item. In a compaction of f(0), f(1), ... these x ascend. Adds to *wrong the number
 * of items that come before an item with a smaller x. */
cudaError_t check_order_async(const Arrays &arrays, shuf_algorithm algorithm, uint64_t epoch,
                              unsigned long long *wrong);

} // namespace bench

#endif
