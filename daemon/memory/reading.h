/* SPDX-License-Identifier: MIT
 *
 * A reading is made of many system calls, or of a walk over many blocks, and requests may ask for
 * it as often as they like. One that took long is used again for 20 times as long, so that readings
 * take a twentieth of the loop's time at most.
 */
#ifndef SHUFD_READING_H
#define SHUFD_READING_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

struct shuf__reading {
    uint64_t at_ns, took_ns; /* 0: never */
};

static inline bool shuf__reading_is_fresh(const struct shuf__reading *reading)
{
    static const uint64_t quick_ns = 100000;
    return reading->took_ns > quick_ns && uv_hrtime() - reading->at_ns < 20 * reading->took_ns;
}

static inline void shuf__reading_begin(struct shuf__reading *reading)
{
    reading->at_ns = uv_hrtime();
}

static inline void shuf__reading_end(struct shuf__reading *reading)
{
    const uint64_t now = uv_hrtime();
    reading->took_ns = now - reading->at_ns;
    reading->at_ns = now;
}

#endif
