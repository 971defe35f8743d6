/* SPDX-License-Identifier: MIT
 *
 * The state of a daemon at one moment, as `shufctl top` reads it.
 */
#ifndef SHUF__VERB_TOP_H
#define SHUF__VERB_TOP_H

#include "shuf.h"

#include <stdint.h>

enum { SHUF__TOP_LEASES = 64, SHUF__TOP_BUCKETS = 64 };

enum shuf__top_stage { SHUF__TOP_QUEUE, SHUF__TOP_DEVICE, SHUF__TOP_REPLY, SHUF__TOP_STAGES };

/* Sums since the start of the daemon. Requests about the daemon itself, such as this one, are not
 * counted. */
struct shuf__top_sample {
    uint64_t at_ns;
    shuf_daemon daemon;
    double requests, failed, values, slow;
    double stage_sum[SHUF__TOP_STAGES], stage_count[SHUF__TOP_STAGES]; /* seconds; requests */
    double bound[SHUF__TOP_BUCKETS];  /* seconds, ascending; the last one is infinite */
    double bucket[SHUF__TOP_BUCKETS]; /* requests of at most this time */
    unsigned buckets;
    double device_used, device_limit;         /* bytes; 0: no memory of its own */
    shuf_lease_entry lease[SHUF__TOP_LEASES]; /* the first ones */
    unsigned leases;
};

/* The time in nanoseconds within which this share of the requests between the two samples was
 * answered. It is the upper bound of a bucket; 0 if there were no requests. */
uint64_t shuf__top_quantile(const struct shuf__top_sample *before,
                            const struct shuf__top_sample *now, double share);

#endif
