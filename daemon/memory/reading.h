/* SPDX-License-Identifier: MIT
 *
 * A reading is a measurement of the system's memory or a walk over many blocks. It costs time, and
 * clients may cause one with each request. So readings take at most a 200th of the loop's time: if
 * they have taken more, the result of the last one is used again. Then fewer than one of 100
 * requests of other users waits for a reading. A client expects that the next reading shows the
 * effect of its request. So some readings in sequence are allowed first. The
 * measured time is CPU time of the thread, so a reading does not count as slow because the machine
 * is busy.
 */
#ifndef SHUFD_READING_H
#define SHUFD_READING_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>
#include <uv.h>

enum { SHUF__READING_SHARE = 200, SHUF__READING_BURST_NS = 500000 };

struct shuf__reading {
    uint64_t begin_ns; /* of the thread's time */
    uint64_t debt_ns;  /* time that readings have taken above their share, at `end_ns` */
    uint64_t end_ns;
};

static inline uint64_t shuf__reading_thread_ns(void)
{
    struct timespec now = {0};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static inline uint64_t shuf__reading_debt(const struct shuf__reading *reading, uint64_t now_ns)
{
    const uint64_t paid = (now_ns - reading->end_ns) / SHUF__READING_SHARE;
    return reading->debt_ns > paid ? reading->debt_ns - paid : 0;
}

/* Whether the last reading must be used again. */
static inline bool shuf__reading_is_fresh(const struct shuf__reading *reading)
{
    return shuf__reading_debt(reading, uv_hrtime()) > SHUF__READING_BURST_NS;
}

static inline void shuf__reading_begin(struct shuf__reading *reading)
{
    reading->begin_ns = shuf__reading_thread_ns();
}

static inline void shuf__reading_end(struct shuf__reading *reading)
{
    const uint64_t now = uv_hrtime(), took = shuf__reading_thread_ns() - reading->begin_ns;
    reading->debt_ns = shuf__reading_debt(reading, now) + took;
    reading->end_ns = now;
}

#endif
