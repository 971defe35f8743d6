/* SPDX-License-Identifier: MIT
 *
 * A reading is a measurement of the system's memory or a walk over many blocks. It costs time, and
 * clients may cause one with each request. So the result of a slow reading is used again for 20
 * times as long as the reading took. Then readings take at most a twentieth of the loop's time. The
 * measured time is CPU time of the thread, so a reading does not count as slow because the machine
 * is busy.
 */
#ifndef SHUFD_READING_H
#define SHUFD_READING_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>
#include <uv.h>

enum {
    SHUF__QUICK_READING_NS = 10000, /* for some files of the system */
    /* For a walk over blocks. This limit is higher, because a client expects that the next reading
     * shows the effect of its request. */
    SHUF__QUICK_WALK_NS = 200000,
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

/* Whether the last reading can be used again. A reading that took at most `quick_ns` is not used
 * again, because a new one is cheap. */
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
