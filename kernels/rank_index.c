/* SPDX-License-Identifier: MIT
 *
 * See rank_index.h.
 */
#include "rank_index.h"

#include "shuf/domain.h"
#include "slice.h"

#include <assert.h>
#include <string.h>

uint64_t shuf__rank_index_bytes(enum shuf_algorithm algorithm, uint64_t n)
{
    const uint64_t domain = UINT64_C(1) << shuf_domain_bits(n);
    if (shuf_algorithm_has_random_access(algorithm) || n == domain ||
        domain <= SHUF__RANK_INDEX_TILE)
        return 0;
    return (domain / SHUF__RANK_INDEX_TILE + 2) * sizeof(uint64_t);
}

bool shuf__rank_index_helps(const struct shuf__rank_index_limits *limits,
                            const struct shuf__request *request)
{
    const struct shuf__permutation *p = shuf__request_permutation(request);
    if (!limits || !p || p->rows != 1 || p->count == 0 || p->n > SHUF__RANK_INDEX_N_MAX ||
        shuf__rank_index_bytes(p->algorithm, p->n) == 0)
        return false;
    if (p->stride <= limits->min_gap)
        return p->offset >= limits->min_skip;
    return p->offset + (p->count - 1) * (p->stride - limits->min_gap) >= limits->min_skip;
}

uint64_t shuf__rank_index_find(const struct shuf__rank_index *ranks, uint64_t position)
{
    uint64_t low = 0, high = ranks->known; /* before[low] <= position < before[high] */
    while (high - low > 1) {
        const uint64_t middle = low + (high - low) / 2;
        if (ranks->before[middle] <= position)
            low = middle;
        else
            high = middle;
    }
    return low;
}

uint64_t shuf__rank_index_written(const struct shuf__rank_index *ranks)
{
    return (ranks->known + 2) * sizeof(uint64_t);
}

/* The first requested position from `from` on, or n if there is none. A position past n wraps
 * around to the front. */
static uint64_t next_requested(const struct shuf__slice *s, uint64_t from)
{
    const uint64_t wrapped = shuf__slice_wraps(s) ? s->last - s->n : s->n;
    uint64_t next = s->offset + shuf__slice_index(s, from) * s->stride;
    if (next > s->last || next > s->n)
        next = s->n;
    return from <= wrapped && wrapped < next ? wrapped : next;
}

/* The last position of the run that begins at `requested`. In a run, neighbouring requested values
 * are less than min_gap apart, so the whole run is evaluated together. */
static uint64_t end_of_run(const struct shuf__slice *s, uint64_t requested, uint64_t min_gap)
{
    if (s->stride >= min_gap || requested < s->offset)
        return requested;
    return shuf__slice_wraps(s) ? s->last - s->stride : s->last;
}

bool shuf__rank_index_next(const struct shuf__rank_index *ranks, const struct shuf__permutation *p,
                           uint64_t most, uint64_t min_gap, struct shuf__span *span)
{
    const struct shuf__slice slice = shuf__slice_make(p);
    const uint64_t known = ranks->known, behind = ranks->before[known];
    assert(span->end <= known);
    const uint64_t requested = next_requested(&slice, ranks->before[span->end]);
    if (requested == p->n)
        return false;
    const uint64_t last = end_of_run(&slice, requested, min_gap);
    span->begin = requested < behind ? shuf__rank_index_find(ranks, requested) : known;
    span->end = last < behind ? shuf__rank_index_find(ranks, last) + 1
                              : (UINT64_C(1) << shuf_domain_bits(p->n)) / SHUF__RANK_INDEX_TILE;
    if (span->end - span->begin > most)
        span->end = span->begin + most;
    return true;
}

void shuf__rank_index_add(struct shuf__rank_index *ranks, const struct shuf__span *span,
                          const uint64_t *starts)
{
    assert(span->begin <= ranks->known);
    if (span->end <= ranks->known)
        return;
    const uint64_t first = ranks->known + 1;
    memcpy(ranks->before + first, starts + (first - span->begin),
           (span->end - ranks->known) * sizeof *starts);
    ranks->known = span->end;
}
