/* SPDX-License-Identifier: MIT
 *
 * The rounds of an exchange. Two ranks divide the records between them into one slice a round, by
 * the same rule. Knows neither NCCL nor CUDA; the device code includes it too.
 */
#ifndef SHUF__NCCL_ROUNDS_H
#define SHUF__NCCL_ROUNDS_H

#include <stdint.h>

#ifdef __CUDACC__
#define SHUF__NCCL_INLINE __host__ __device__ inline
#else
#define SHUF__NCCL_INLINE static inline
#endif

/* `count` records that one rank moves. In the order of the input they begin at `from`, and in that
 * of the output at `to`. An order is a list of the plan, or a buffer of a round. */
struct shuf__nccl_segment {
    uint64_t count, from, to;
};

/* The slice of a round begins here, and ends where that of the next round begins. */
SHUF__NCCL_INLINE uint64_t shuf__nccl_slice(uint64_t count, uint64_t round, uint64_t rounds)
{
    const uint64_t rest = count % rounds;
    return count / rounds * round + (round < rest ? round : rest);
}

SHUF__NCCL_INLINE uint64_t shuf__nccl_slice_count(uint64_t count, uint64_t round, uint64_t rounds)
{
    return count / rounds + (round < count % rounds);
}

#ifdef __cplusplus
extern "C" {
#endif

/* The records that a buffer needs for any round: the longest slice of each segment. */
uint64_t shuf__nccl_buffer_records(const struct shuf__nccl_segment *segments, unsigned world,
                                   uint64_t rounds);

/* The least number of rounds, at least 2, with which two rounds of both directions fit the budget.
 * Rounds of one record for each segment need not fit. */
uint64_t shuf__nccl_count_rounds(const struct shuf__nccl_segment *leaving,
                                 const struct shuf__nccl_segment *coming, unsigned world,
                                 uint64_t record, uint64_t budget);

#ifdef __cplusplus
}
#endif

#endif
