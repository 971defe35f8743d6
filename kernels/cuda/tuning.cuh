/* SPDX-License-Identifier: MIT
 *
 * The numbers that shape the kernels, together. Measured on an H200; the
 * results do not depend on them.
 */
#ifndef SHUF__CUDA_TUNING_CUH
#define SHUF__CUDA_TUNING_CUH

#include <cstdint>

namespace shuf::tuning
{

constexpr int threads = 256; /* of a block */
constexpr int items = 16; /* values a thread evaluates side by side, for instruction parallelism */
constexpr int tile = threads * items;
constexpr int rounds_unrolled = 12; /* of 24 */
constexpr int blocks_per_sm = 3;    /* bounds the registers a thread may have */

/* One launch covers at most this much, so that a look-back prefix fits 32 bits
 * and a long computation can be cancelled in between. */
constexpr uint64_t launch_tiles = (uint64_t{1} << 31) / tile;
constexpr uint64_t launch_rows = 65536;

/* The rank index (rank_index.h), by what 2^30 inputs take, 6.6 ms. Passing over min_skip values
 * takes a millisecond. Known values at least min_gap from each other have launches of their own,
 * which take less than all that lies between. */
constexpr uint64_t min_skip = uint64_t{1} << 27, min_gap = uint64_t{1} << 21;

/* A computation of one tile: more threads with fewer values each, since only latency counts. */
constexpr int quick_threads = 1024;
constexpr int quick_items = tile / quick_threads;

/* primefold: values of a thread come in groups of four, which it stores at once. */
constexpr int fold_threads = 128;
constexpr int fold_groups = 4, fold_blocks_per_sm = 12; /* side by side; of small n */
constexpr int fold_unchecked_groups = 4, fold_unchecked_blocks_per_sm = 10;
constexpr int fold_checked_groups = 2, fold_checked_blocks_per_sm = 10;
constexpr int fold_look_up_blocks_per_sm = 14;
constexpr int fold_wide_groups = 2, fold_wide_blocks_per_sm = 7; /* of 64 bits */
constexpr int fold_small_row_blocks_per_sm = 8, fold_row_blocks_per_sm = 7,
              fold_wide_row_blocks_per_sm = 5; /* of many rows */
constexpr uint64_t fold_tiles = 16;            /* a block takes so many tiles at most, */
constexpr uint64_t fold_blocks = 4096; /* and only one while there are fewer blocks than this */
constexpr uint64_t fold_large = uint64_t{1} << 22; /* values for which a second launch pays */
constexpr uint64_t fold_values_each = 32;          /* of a large row, for one to be corrected */
constexpr int fold_turns = 32;               /* groups that a thread has of a long row in a batch */
constexpr uint64_t fold_short = 512;         /* groups of a short row, at most */
constexpr uint64_t fold_block_groups = 3072; /* of short rows in a block, at most */
constexpr uint64_t fold_rows = 64;           /* short rows in a block, at most */
constexpr int exchange_rows = 128;           /* rows of few values in a block */

/* Streams: a warp takes a superblock of 1024 values at a time, a thread of uniform ones several
 * draws. */
constexpr int gauss_threads = 256, gauss_wide_threads = 192, gauss_blocks_per_sm = 2;
constexpr int gauss_quick_threads = 32 * (tile / 1024 + 1); /* a superblock a warp */
constexpr int uniform_threads = 256, uniform_draws = 4;
constexpr int box_muller_threads = 256, box_muller_draws = 4;

/* Shuffles: a block moves so many bytes of large records; fewer records than `move_few` are in
 * small tiles. Records of `large_record` bytes or more are moved one by one. Of a scan, whose tiles
 * are large and evaluated by each block that shares one, there are no more than `scan_blocks` for
 * that, twenty times what a GPU holds. By windows where all records have `windows_from` bytes or
 * more, of which `window_bytes` are in one: below, the L2 holds enough of them. */
constexpr uint64_t move_bytes = 64 << 10, move_few = uint64_t{3} << 20;
constexpr uint64_t large_record = 512 << 10;
constexpr int move_few_blocks_per_sm = 12;
constexpr uint64_t scan_blocks = 8192;
constexpr uint64_t windows_from = uint64_t{80} << 20, window_bytes = 16 << 20;
constexpr int window_threads = 512, window_items = 16, window_blocks_per_sm = 2;
constexpr int window_most = 512; /* windows */
constexpr int gather_threads = 256, gather_items = 8;
constexpr int unpermute_threads = 1024;

constexpr int reduce_threads = 256;
constexpr int reduce_blocks_per_sm = 8;

} // namespace shuf::tuning

#endif
