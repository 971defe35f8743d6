/* SPDX-License-Identifier: MIT
 *
 * A histogram of times: three buckets for each power of ten, from a microsecond to 100 seconds.
 * Each bucket keeps its last request as an exemplar. All calls are on the loop's thread.
 */
#ifndef SHUFD_HISTOGRAM_H
#define SHUFD_HISTOGRAM_H

#include <stdint.h>

enum { SHUF__BUCKETS = 26 }; /* the last one has no upper bound */

/* Names one request of the daemon. */
struct shuf__request_id {
    uint64_t connection, id; /* the number of the connection, and the id that its client chose */
};

struct shuf__exemplar {
    struct shuf__request_id request;
    uint64_t ns;    /* the observed time; 0: there is no exemplar */
    uint64_t at_ns; /* when it was observed, by uv_hrtime() */
};

struct shuf__histogram {
    uint64_t count[SHUF__BUCKETS]; /* of each bucket alone, not cumulative */
    uint64_t sum_ns;
    struct shuf__exemplar last[SHUF__BUCKETS];
};

/* The upper bounds in nanoseconds, inclusive. */
extern const uint64_t shuf__bucket_bounds[SHUF__BUCKETS - 1];

void shuf__histogram_observe(struct shuf__histogram *histogram, uint64_t ns,
                             struct shuf__request_id request, uint64_t at_ns);

uint64_t shuf__histogram_count(const struct shuf__histogram *histogram);

#endif
