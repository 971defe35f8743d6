/* SPDX-License-Identifier: MIT
 *
 * See histogram.h.
 */
#include "histogram.h"

#define DECADE(ns) (ns), (ns)*5 / 2, (ns)*5

const uint64_t shuf__bucket_bounds[SHUF__BUCKETS - 1] = {
    DECADE(UINT64_C(1000)),       DECADE(UINT64_C(10000)),       DECADE(UINT64_C(100000)),
    DECADE(UINT64_C(1000000)),    DECADE(UINT64_C(10000000)),    DECADE(UINT64_C(100000000)),
    DECADE(UINT64_C(1000000000)), DECADE(UINT64_C(10000000000)), UINT64_C(100000000000)};

static unsigned find_bucket(uint64_t ns)
{
    unsigned bucket = 0;
    while (bucket < SHUF__BUCKETS - 1 && ns > shuf__bucket_bounds[bucket])
        bucket++;
    return bucket;
}

void shuf__histogram_observe(struct shuf__histogram *histogram, uint64_t ns,
                             struct shuf__request_id request, uint64_t at_ns)
{
    const unsigned bucket = find_bucket(ns);
    histogram->count[bucket]++;
    histogram->sum_ns += ns;
    histogram->last[bucket] = (struct shuf__exemplar){request, ns ? ns : 1, at_ns};
}

uint64_t shuf__histogram_count(const struct shuf__histogram *histogram)
{
    uint64_t count = 0;
    for (unsigned i = 0; i < SHUF__BUCKETS; i++)
        count += histogram->count[i];
    return count;
}
