/* SPDX-License-Identifier: MIT
 *
 * A reading of the system's memory or of many blocks costs time, and clients may cause one with
 * each request. So a reading that took long is used again for 20 times as long: readings take a
 * twentieth of the loop's time at most. The time is that of the thread, so a busy machine does not
 * make readings old.
 */
#ifndef SHUFD_READING_H
#define SHUFD_READING_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>
#include <uv.h>

enum {
    SHUF__QUICK_READING_NS = 10000, /* of some files of the system */
    SHUF__QUICK_WALK_NS = 200000,   /* over blocks: clients look for the effect of their requests */
};

struct shuf__reading {
    uint64_t begin_ns, took_ns; /* of the thread's time */
    uint64_t end_ns;
};

static inline uint64_t shuf__reading_thread_ns(void)
{
    struct timespec now = {0};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* One that took no more than `quick_ns` is made anew each time. */
static inline bool shuf__reading_is_fresh(const struct shuf__reading *reading, uint64_t quick_ns)
{
    return reading->took_ns > quick_ns && uv_hrtime() - reading->end_ns < 20 * reading->took_ns;
}

static inline void shuf__reading_begin(struct shuf__reading *reading)
{
    reading->begin_ns = shuf__reading_thread_ns();
}

static inline void shuf__reading_end(struct shuf__reading *reading)
{
    reading->took_ns = shuf__reading_thread_ns() - reading->begin_ns;
    reading->end_ns = uv_hrtime();
}

#endif
