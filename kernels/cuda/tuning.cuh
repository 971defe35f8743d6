/* SPDX-License-Identifier: MIT
 *
 * The tuning numbers of the kernels, measured on an H200. Results do not depend on them.
 */
#ifndef SHUF__CUDA_TUNING_CUH
#define SHUF__CUDA_TUNING_CUH

#include <cstdint>

namespace shuf::tuning
{

/* The threads that a multiprocessor holds. ptxas refuses a kernel that asks for more. */
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ == 750
constexpr int sm_threads = 1024;
#elif defined __CUDA_ARCH__ && __CUDA_ARCH__ != 800 && __CUDA_ARCH__ != 900 && \
    __CUDA_ARCH__ / 100 != 10
constexpr int sm_threads = 1536;
#else
constexpr int sm_threads = 2048;
#endif

/* The blocks per multiprocessor that a kernel asks for, which limit the registers of a thread.
 * For compute capabilities above 9.0 the compiler needs more registers, and would spill. */
constexpr int asked(int blocks)
{
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 1000
    return (blocks + 1) / 2;
#else
    return blocks;
#endif
}

/* The same, and at most the blocks that fit. */
template <int Threads> constexpr int resident(int blocks)
{
    return asked(blocks) < sm_threads / Threads ? asked(blocks) : sm_threads / Threads;
}

constexpr int threads = 256; /* threads of a block */
constexpr int items = 16;    /* values that a thread computes at the same time */
constexpr int tile = threads * items;
constexpr int rounds_unrolled = 12;                 /* of 24 */
constexpr int blocks_per_sm = asked(3);             /* limits the registers of a thread */
#if defined __CUDACC__ && __CUDACC_VER_MAJOR__ < 13 /* words of 64 bits would spill */
constexpr int wide_blocks_per_sm = 2;
#else
constexpr int wide_blocks_per_sm = blocks_per_sm;
#endif

/* The most tiles and rows of one launch. With this limit, a look-back prefix fits 32 bits, and a
 * long computation can be cancelled between its launches. */
constexpr uint64_t launch_tiles = (uint64_t{1} << 31) / tile;
constexpr uint64_t launch_rows = 65536;

/* The evaluations of a small computation, which comes before others. Its kernel takes at most about
 * 10 us, several times less than its way through the daemon. */
constexpr uint64_t small = uint64_t{1} << 20;

/* The limits of the rank index (rank_index.h). 2^30 inputs take 6.6 ms, so min_skip inputs take
 * about a millisecond. The evaluation of min_gap inputs takes longer than a launch. So two known
 * values that are at least min_gap apart have separate launches. */
constexpr uint64_t min_skip = uint64_t{1} << 27, min_gap = uint64_t{1} << 21;

/* A computation of one tile has more threads, with fewer values each, because this shortens its
 * latency. */
constexpr int quick_threads = 1024;
constexpr int quick_items = tile / quick_threads;

/* primefold: a thread computes groups of four values, and stores a group together. `..._groups` is
 * the number of groups that a thread computes at the same time. */
constexpr int fold_threads = 128;
constexpr int fold_groups = 4, fold_blocks_per_sm = resident<fold_threads>(12); /* for small n */
constexpr int fold_unchecked_groups = 4, fold_unchecked_blocks_per_sm = resident<fold_threads>(10);
constexpr int fold_checked_groups = 2, fold_checked_blocks_per_sm = resident<fold_threads>(10);
constexpr int fold_look_up_blocks_per_sm = resident<fold_threads>(12);
constexpr int fold_wide_groups = 2, fold_wide_blocks_per_sm = asked(7); /* for words of 64 bits */
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ < 900 /* more blocks would spill there */
constexpr int fold_sum_blocks_per_sm = 5, walk_wide_blocks_per_sm = 5;
#else
constexpr int fold_sum_blocks_per_sm = asked(7), walk_wide_blocks_per_sm = asked(6);
#endif
constexpr int fold_sum_groups = 3, fold_sum_wide_blocks_per_sm = asked(6);
constexpr int fold_small_row_blocks_per_sm = asked(8), fold_row_blocks_per_sm = asked(7),
              fold_wide_row_blocks_per_sm = asked(5); /* for many rows */
constexpr uint64_t fold_tiles = 16;                   /* most tiles of a block */
constexpr uint64_t fold_blocks = 4096; /* with fewer blocks, each block has only one tile */
constexpr uint64_t fold_large = uint64_t{1} << 22; /* from this count on a second launch pays */
/* Of a large row, at most one value in `fold_values_each` may need a correction. */
constexpr uint64_t fold_values_each = 32;
constexpr int fold_turns = 32;               /* groups of a thread, for a long row of a batch */
constexpr uint64_t fold_short = 512;         /* most groups of a short row */
constexpr uint64_t fold_block_groups = 3072; /* most groups of short rows in a block */
constexpr uint64_t fold_rows = 64;           /* most short rows in a block */
constexpr int exchange_rows = 128;           /* rows of few values in a block */
constexpr int plan_blocks_per_sm = asked(7); /* for plans of exchanges */

/* Plans for few ranks. A rank's order is selected from n values if the rank has more than one in
 * `select_..._most` of all records. Its places are split for up to `split_ranks` ranks. Sorts make
 * the other lists. */
constexpr int walk_groups = 4, walk_blocks_per_sm = asked(4);
constexpr int walk_wide_groups = 2;                    /* for words of 64 bits */
constexpr uint64_t walk_run = 2048;                    /* positions of a warp */
constexpr uint64_t walk_positions = uint64_t{1} << 31; /* of a launch */
constexpr uint64_t select_most = 13, select_wide_most = 15, select_wide_inverse_most = 6;
constexpr int split_ranks = 8;

/* One-sided plans. */
constexpr int plan_sort_threads = 256, plan_sort_blocks_per_sm = 4, plan_sort_batch = 8;

/* Streams. In a Gaussian stream a warp computes a superblock of 1024 values at a time; its sums of
 * powers, and those of doubles, need more registers a thread. In other streams a thread computes
 * several draws. */
constexpr int gauss_threads = 256, gauss_wide_threads = 192, gauss_wide_more_threads = 128,
              gauss_sum_threads = 128, gauss_blocks_per_sm = 2, gauss_wide_blocks_per_sm = asked(2);
/* The blocks of a Gaussian kernel run until its end, and no other block has room beside them. With
 * 2^29 values, this takes 0.6 ms (f64: 1.2 ms). */
constexpr uint64_t gauss_launch = uint64_t{1} << 29;
/* The most superblocks of a computation by one launch, which has a warp for each of them: without
 * and with a table in shared memory. */
constexpr uint64_t gauss_some = 256, gauss_more = 4096;
constexpr int gauss_quick_threads = 32 * (tile / 1024 + 1); /* a warp for each superblock */
constexpr int draw_threads = 256, draws_of_thread = 4;
constexpr uint64_t draw_blocks = 1024; /* the most with one launch */
constexpr int sum_blocks_per_sm = 6;   /* of a summary, whose blocks run until its end */
constexpr int columns_of_thread = 4;   /* weighted draws */

/* Shuffles:
 *
 * - If records are long, a block moves `move_bytes` bytes of a tile.
 * - An array of fewer than `move_few` records has small tiles.
 * - Records of `large_record` bytes or more are moved by shuffle_large.cu.
 * - In a scan, several blocks may share a tile, and each evaluates the whole tile. So such a scan
 *   has at most `scan_blocks` blocks, twenty times the number that a GPU holds.
 * - An array of `windows_from` bytes or more is shuffled by windows of `window_bytes` bytes. A
 *   smaller array does not need this, because enough of it fits the L2. */
constexpr uint64_t move_bytes = 64 << 10, move_few = uint64_t{3} << 20;
constexpr uint64_t large_record = 512 << 10;
constexpr int move_few_blocks_per_sm = resident<fold_threads>(12);
constexpr uint64_t scan_blocks = 8192;
constexpr uint64_t windows_from = uint64_t{80} << 20, window_bytes = 16 << 20;
constexpr int window_threads = 512, window_items = 16, window_blocks_per_sm = asked(2);
constexpr int window_most = 512; /* the most windows of a shuffle */
constexpr int gather_threads = 256, gather_items = 8;
constexpr int unpermute_threads = 1024;

constexpr int reduce_threads = 256;
constexpr int reduce_blocks_per_sm = 8;

} // namespace shuf::tuning

#endif
