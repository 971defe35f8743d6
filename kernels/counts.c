/* SPDX-License-Identifier: MIT
 *
 * See counts.h.
 */
#include "counts.h"

#include "shuf/domain.h"

#include <assert.h>
#include <string.h>

uint64_t shuf__counts_bytes(enum shuf_algorithm algorithm, uint64_t n)
{
    const uint64_t domain = UINT64_C(1) << shuf_domain_bits(n);
    if (algorithm == SHUF_ALGORITHM_PRIMEFOLD || n == domain || domain <= SHUF__COUNTS_TILE)
        return 0;
    return (domain / SHUF__COUNTS_TILE + 2) * sizeof(uint64_t);
}

bool shuf__counts_help(const struct shuf__backend *backend, const struct shuf__job *job)
{
    if (!backend->counts || job->distribution || job->rows != 1 || job->count == 0 ||
        job->n > SHUF__COUNTS_N_MAX || shuf__counts_bytes(job->algorithm, job->n) == 0)
        return false;
    if (job->stride <= backend->apart)
        return job->offset >= backend->little;
    return job->offset + (job->count - 1) * (job->stride - backend->apart) >= backend->little;
}

uint64_t shuf__counts_find(const struct shuf__counts *counts, uint64_t position)
{
    uint64_t low = 0, high = counts->known; /* before[low] <= position < before[high] */
    while (high - low > 1) {
        const uint64_t middle = low + (high - low) / 2;
        if (counts->before[middle] <= position)
            low = middle;
        else
            high = middle;
    }
    return low;
}

uint64_t shuf__counts_written(const struct shuf__counts *counts)
{
    return (counts->known + 2) * sizeof(uint64_t);
}

/* The first position from there on that has a wanted value; n: none. The last value of a padded
 * shard stands at the front. */
static uint64_t next_wanted(const struct shuf__job *job, uint64_t from)
{
    const uint64_t last = job->offset + (job->count - 1) * job->stride;
    const uint64_t wrapped = last < job->n ? job->n : last - job->n;
    const uint64_t steps = from <= job->offset ? 0 : (from - job->offset - 1) / job->stride + 1;
    uint64_t next = job->offset + steps * job->stride;
    if (next > last || next > job->n)
        next = job->n;
    return from <= wrapped && wrapped < next ? wrapped : next;
}

/* Up to which position everything is evaluated at once that is wanted from `wanted` on. */
static uint64_t end_of_run(const struct shuf__job *job, uint64_t wanted, uint64_t apart)
{
    const uint64_t last = job->offset + (job->count - 1) * job->stride;
    if (job->stride >= apart || wanted < job->offset)
        return wanted;
    return last < job->n ? last : last - job->stride;
}

bool shuf__counts_next(const struct shuf__job *job, uint64_t most, uint64_t apart,
                       struct shuf__span *span)
{
    const struct shuf__counts *counts = job->counts;
    const uint64_t known = counts->known, behind = counts->before[known];
    assert(span->end <= known);
    const uint64_t wanted = next_wanted(job, counts->before[span->end]);
    if (wanted == job->n)
        return false;
    const uint64_t last = end_of_run(job, wanted, apart);
    span->begin = wanted < behind ? shuf__counts_find(counts, wanted) : known;
    span->end = last < behind ? shuf__counts_find(counts, last) + 1
                              : (UINT64_C(1) << shuf_domain_bits(job->n)) / SHUF__COUNTS_TILE;
    if (span->end - span->begin > most)
        span->end = span->begin + most;
    return true;
}

void shuf__counts_add(struct shuf__counts *counts, const struct shuf__span *span,
                      const uint64_t *starts)
{
    assert(span->begin <= counts->known);
    if (span->end <= counts->known)
        return;
    const uint64_t first = counts->known + 1;
    memcpy(counts->before + first, starts + (first - span->begin),
           (span->end - counts->known) * sizeof *starts);
    counts->known = span->end;
}
