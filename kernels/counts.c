/* SPDX-License-Identifier: MIT
 *
 * See counts.h.
 */
#include "counts.h"

#include "shuf/domain.h"

uint64_t shuf__counts_bytes(enum shuf_algorithm algorithm, uint64_t n)
{
    const uint64_t domain = UINT64_C(1) << shuf_domain_bits(n);
    if (algorithm == SHUF_ALGORITHM_PRIMEFOLD || n == domain || domain <= SHUF__COUNTS_TILE)
        return 0;
    return (domain / SHUF__COUNTS_TILE + 2) * sizeof(uint64_t);
}

bool shuf__counts_help(const struct shuf__backend *backend, const struct shuf__job *job)
{
    if (!backend->counts || job->rows != 1 || job->count == 0 || job->n > SHUF__COUNTS_N_MAX ||
        shuf__counts_bytes(job->algorithm, job->n) == 0)
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
