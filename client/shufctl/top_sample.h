/* SPDX-License-Identifier: MIT
 *
 * The state of a daemon at one moment, as `shufctl top` reads it.
 */
#ifndef SHUF__TOP_SAMPLE_H
#define SHUF__TOP_SAMPLE_H

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

/* Fails as the calls of the library do, with the message in the handle. */
shuf_status shuf__top_sample_read(shuf *handle, struct shuf__top_sample *sample);

#endif
