/* SPDX-License-Identifier: MIT
 *
 * The tuning numbers of the kernels, measured on an H200. Results do not depend on them.
 */
#ifndef SHUF__CUDA_TUNING_CUH
#define SHUF__CUDA_TUNING_CUH

#include <cstdint>

namespace shuf::tuning
{

constexpr int threads = 256; /* of a block */
constexpr int items = 16;    /* values of a thread, side by side for instruction parallelism */
constexpr int tile = threads * items;
constexpr int rounds_unrolled = 12; /* of 24 */
constexpr int blocks_per_sm = 3;    /* limits the registers of a thread */

/* The most tiles and rows of one launch. So a look-back prefix fits 32 bits, and a long computation
 * can be cancelled between launches. */
constexpr uint64_t launch_tiles = (uint64_t{1} << 31) / tile;
constexpr uint64_t launch_rows = 65536;

/* The limits of the rank index (rank_index.h), where 2^30 inputs take 6.6 ms. To pass over min_skip
 * values takes a millisecond. Known values at least min_gap apart have separate launches, because a
 * launch takes less time than the values between them. */
constexpr uint64_t min_skip = uint64_t{1} << 27, min_gap = uint64_t{1} << 21;

/* A computation of one tile has more threads with fewer values each, because only latency
 * counts. */
constexpr int quick_threads = 1024;
constexpr int quick_items = tile / quick_threads;

/* primefold: a thread makes values in groups of four, and stores a group together. */
constexpr int fold_threads = 128;
constexpr int fold_groups = 4, fold_blocks_per_sm = 12; /* side by side; for small n */
constexpr int fold_unchecked_groups = 4, fold_unchecked_blocks_per_sm = 10;
constexpr int fold_checked_groups = 2, fold_checked_blocks_per_sm = 10;
constexpr int fold_look_up_blocks_per_sm = 14;
constexpr int fold_wide_groups = 2, fold_wide_blocks_per_sm = 7; /* of 64 bits */
constexpr int fold_small_row_blocks_per_sm = 8, fold_row_blocks_per_sm = 7,
              fold_wide_row_blocks_per_sm = 5; /* for many rows */
constexpr uint64_t fold_tiles = 16;            /* most tiles of a block */
constexpr uint64_t fold_blocks = 4096; /* below this number of blocks, a block has one tile */
constexpr uint64_t fold_large = uint64_t{1} << 22; /* from so many values on a second launch pays */
constexpr uint64_t fold_values_each = 32;    /* values that a large row needs for each correction */
constexpr int fold_turns = 32;               /* groups of a thread, for a long row of a batch */
constexpr uint64_t fold_short = 512;         /* most groups of a short row */
constexpr uint64_t fold_block_groups = 3072; /* most groups of short rows in a block */
constexpr uint64_t fold_rows = 64;           /* most short rows in a block */
constexpr int exchange_rows = 128;           /* rows of few values in a block */

/* Streams: a warp makes a Gaussian superblock of 1024 values at a time, and a thread several draws
 * of other streams. */
constexpr int gauss_threads = 256, gauss_wide_threads = 192, gauss_blocks_per_sm = 2;
constexpr int gauss_quick_threads = 32 * (tile / 1024 + 1); /* a superblock a warp */
constexpr int uniform_threads = 256, uniform_draws = 4;
constexpr int box_muller_threads = 256, box_muller_draws = 4;

/* Shuffles: a block moves `move_bytes` bytes of large records. Fewer than `move_few` records are in
 * small tiles. Records of `large_record` bytes or more move one by one. A scan lets several blocks
 * share a tile. Each of them evaluates the whole tile, so such a scan has at most `scan_blocks`
 * blocks, twenty times what a GPU holds. Arrays of `windows_from` bytes or more go by windows of
 * `window_bytes`. Enough of a smaller array fits the L2. */
constexpr uint64_t move_bytes = 64 << 10, move_few = uint64_t{3} << 20;
constexpr uint64_t large_record = 512 << 10;
constexpr int move_few_blocks_per_sm = 12;
constexpr uint64_t scan_blocks = 8192;
constexpr uint64_t windows_from = uint64_t{80} << 20, window_bytes = 16 << 20;
constexpr int window_threads = 512, window_items = 16, window_blocks_per_sm = 2;
constexpr int window_most = 512; /* windows of a shuffle */
constexpr int gather_threads = 256, gather_items = 8;
constexpr int unpermute_threads = 1024;

constexpr int reduce_threads = 256;
constexpr int reduce_blocks_per_sm = 8;

} // namespace shuf::tuning

#endif
