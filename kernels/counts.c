/* SPDX-License-Identifier: MIT
 *
 * See counts.h.
 */
#include "counts.h"

#include "shuf/domain.h"
#include "slice.h"

#include <assert.h>
#include <string.h>

uint64_t shuf__counts_bytes(enum shuf_algorithm algorithm, uint64_t n)
{
    const uint64_t domain = UINT64_C(1) << shuf_domain_bits(n);
    if (shuf_algorithm_has_random_access(algorithm) || n == domain || domain <= SHUF__COUNTS_TILE)
        return 0;
    return (domain / SHUF__COUNTS_TILE + 2) * sizeof(uint64_t);
}

bool shuf__counts_help(const struct shuf__backend *backend, const struct shuf__request *request)
{
    const struct shuf__permutation *p = shuf__request_permutation(request);
    if (!backend->counts || !p || p->rows != 1 || p->count == 0 || p->n > SHUF__COUNTS_N_MAX ||
        shuf__counts_bytes(p->algorithm, p->n) == 0)
        return false;
    if (p->stride <= backend->apart)
        return p->offset >= backend->little;
    return p->offset + (p->count - 1) * (p->stride - backend->apart) >= backend->little;
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

/* The first wanted position from `from` on; n: none. A value that wraps stands at the front. */
static uint64_t next_wanted(const struct shuf__slice *s, uint64_t from)
{
    const uint64_t wrapped = shuf__slice_wraps(s) ? s->last - s->n : s->n;
    uint64_t next = s->offset + shuf__slice_index(s, from) * s->stride;
    if (next > s->last || next > s->n)
        next = s->n;
    return from <= wrapped && wrapped < next ? wrapped : next;
}

/* The last position of the run of wanted values, less than `apart` from each other, that begins at
 * `wanted`: all of it is evaluated at once. */
static uint64_t end_of_run(const struct shuf__slice *s, uint64_t wanted, uint64_t apart)
{
    if (s->stride >= apart || wanted < s->offset)
        return wanted;
    return shuf__slice_wraps(s) ? s->last - s->stride : s->last;
}

bool shuf__counts_next(const struct shuf__job *job, uint64_t most, uint64_t apart,
                       struct shuf__span *span)
{
    const struct shuf__permutation *p = shuf__request_permutation(&job->request);
    const struct shuf__slice slice = shuf__slice_make(p);
    const struct shuf__counts *counts = job->counts;
    const uint64_t known = counts->known, behind = counts->before[known];
    assert(span->end <= known);
    const uint64_t wanted = next_wanted(&slice, counts->before[span->end]);
    if (wanted == p->n)
        return false;
    const uint64_t last = end_of_run(&slice, wanted, apart);
    span->begin = wanted < behind ? shuf__counts_find(counts, wanted) : known;
    span->end = last < behind ? shuf__counts_find(counts, last) + 1
                              : (UINT64_C(1) << shuf_domain_bits(p->n)) / SHUF__COUNTS_TILE;
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
