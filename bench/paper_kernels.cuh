/* SPDX-License-Identifier: MIT
 *
 * The paper's bijective shuffles of u64 items on a GPU, but for Bijective2, which the backend has,
 * and what checks any shuffle. All of it is work on the default stream. n <= 2^30, so that all
 * numbers fit 32 bits.
 */
#ifndef SHUF__BENCH_PAPER_KERNELS_CUH
#define SHUF__BENCH_PAPER_KERNELS_CUH

#include "shuf/algorithm.h"

#include <cuda_runtime.h>

#include <cstdint>

namespace bench
{

/* Device memory; the permutation is that of (seed, epoch) as docs/spec.md has it. */
struct Arrays {
    const uint64_t *in;
    uint64_t *out;
    uint64_t n;
};

/* Tiles of the domain: how long what is said to be of each of them has to be. */
uint64_t tiles_of(uint64_t n);
/* Numbers in it: 2^B. */
uint64_t domain_of(uint64_t n);

/* Bijective0's passes: f(x) of the whole domain and whether it is kept; and, after a scan of that,
 * everything to its place. */
cudaError_t evaluate_async(uint64_t n, uint64_t epoch, uint32_t *values, uint32_t *kept);
cudaError_t compact_async(const Arrays &arrays, const uint32_t *values, const uint32_t *kept,
                          const uint32_t *places);

/* Bijective1's: how many of each tile are kept; and, after a scan of that, f(x) again. */
cudaError_t count_async(uint64_t n, uint64_t epoch, uint32_t *counts);
cudaError_t place_async(const Arrays &arrays, uint64_t epoch, const uint32_t *places);

cudaError_t gather_async(const Arrays &arrays, const uint32_t *index);

/* items[i] = paper_item(i) */
cudaError_t fill_async(uint64_t *items, uint64_t count);

/* Adds to *wrong the items of `out` that are not of the input, or are there again; `seen` has a bit
 * for each of n, all 0. */
cudaError_t check_all_async(const Arrays &arrays, uint32_t *seen, unsigned long long *wrong);

/* Of a permutation by philox24 or lcg, adds to *wrong the items that come before another one whose
 * number in the domain, by the inline cipher backwards, is smaller: what is left of f(0), f(1), ...
 * has none. */
cudaError_t check_order_async(const Arrays &arrays, shuf_algorithm algorithm, uint64_t epoch,
                              unsigned long long *wrong);

} // namespace bench

#endif
