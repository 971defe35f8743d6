/* SPDX-License-Identifier: MIT
 *
 * Random numbers for the peers in C: SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom
 * number generators", OOPSLA 2014). A number takes about a nanosecond.
 */
#ifndef SHUF__BENCH_DRAW_H
#define SHUF__BENCH_DRAW_H

#include <stdint.h>

struct draw {
    uint64_t state;
};

static inline uint64_t draw_word(struct draw *draw)
{
    uint64_t z = draw->state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

/* A separate stream for each (seed, part). */
static inline struct draw draw_for(uint64_t seed, uint64_t part)
{
    struct draw draw = {seed ^ part << 32};
    draw.state = draw_word(&draw);
    return draw;
}

/* 0 .. n - 1. The bias is negligible, because n is far below 2^64. */
static inline uint64_t draw_below(struct draw *draw, uint64_t n)
{
    return (uint64_t)((unsigned __int128)draw_word(draw) * n >> 64);
}

#endif
