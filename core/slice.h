/* SPDX-License-Identifier: MIT
 *
 * The positions of a row that belong to a slice (request.h), for host and device. Value i of the
 * slice stands at position offset + i * stride. Only the last value of a padded shard can stand
 * past the end of the row. This value wraps to the front. A caller that has a part of the row calls
 * shuf__slice_hits() with the position of the part. If the slice wraps, the caller makes a second
 * call with this position + n.
 */
#ifndef SHUF__SLICE_H
#define SHUF__SLICE_H

#include "request.h"
#include "shuf/inline.h"

struct shuf__slice {
    uint64_t n, count, offset, stride;
    uint64_t last; /* offset + (count - 1) * stride; n or more where the last value wraps */
};

/* The slice of each row; count >= 1. */
SHUF_FUNCTION struct shuf__slice shuf__slice_make(const struct shuf__permutation *p)
{
    struct shuf__slice s = {p->n, p->count, p->offset, p->stride, 0};
    s.last = p->offset + (p->count - 1) * p->stride;
    return s;
}

SHUF_FUNCTION bool shuf__slice_wraps(const struct shuf__slice *s)
{
    return s->last >= s->n;
}

/* The position of value i. */
SHUF_FUNCTION uint64_t shuf__slice_position(const struct shuf__slice *s, uint64_t i)
{
    const uint64_t position = s->offset + i * s->stride;
    return position < s->n ? position : position - s->n;
}

/* The number of the first value of the slice at or after `position`. Ignores wrapping, so the
 * number can be `count` or more. */
SHUF_FUNCTION uint64_t shuf__slice_index(const struct shuf__slice *s, uint64_t position)
{
    return position <= s->offset ? 0 : (position - s->offset + s->stride - 1) / s->stride;
}

/* The requested values in a part of a row. In the part they have the numbers first, first + stride,
 * ... below `end`. The first value of the part has number 0. `index` is the number of the first
 * requested value in the slice. If first == end, no value of the part is requested. */
struct shuf__hits {
    uint64_t index, first, end;
};

/* The requested values in the part of `kept` values that begins at `position`. */
SHUF_FUNCTION struct shuf__hits shuf__slice_hits(const struct shuf__slice *s, uint64_t position,
                                                 uint64_t kept)
{
    struct shuf__hits hits = {shuf__slice_index(s, position), 0, 0};
    const uint64_t from = s->offset + hits.index * s->stride;
    const uint64_t stop = s->last + 1 < position + kept ? s->last + 1 : position + kept;
    hits.first = from < stop ? from - position : 0;
    hits.end = from < stop ? stop - position : 0;
    return hits;
}

/* How many values are requested. */
SHUF_FUNCTION uint64_t shuf__hits_count(const struct shuf__hits *hits, uint64_t stride)
{
    return hits->first < hits->end ? (hits->end - hits->first - 1) / stride + 1 : 0;
}

static inline uint64_t shuf__smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Makes *part at most `most` values of `whole` from number `first` on, below rows * count: whole
 * rows, or a part of one row. Returns their number. */
static inline uint64_t shuf__slice_take(const struct shuf__permutation *whole, uint64_t first,
                                        uint64_t most, struct shuf__permutation *part)
{
    const struct shuf__slice slice = shuf__slice_make(whole);
    const uint64_t row = first / whole->count, i = first % whole->count;
    *part = *whole;
    part->epoch += row;
    part->rows = 1;
    if (i == 0 && most >= whole->count) {
        part->rows = shuf__smaller(most / whole->count, whole->rows - row);
        return part->rows * whole->count;
    }
    part->offset = shuf__slice_position(&slice, i);
    return part->count = shuf__smaller(most, whole->count - i);
}

/* Makes *request, a permutation or a stream, a request for at most `most` of its values from number
 * `first` on. Returns their number. */
static inline uint64_t shuf__request_take(struct shuf__request *request, uint64_t first,
                                          uint64_t most)
{
    struct shuf__stream *stream = &request->stream;
    if (request->kind == SHUF__PERMUTATION) {
        const struct shuf__permutation whole = request->permutation;
        return shuf__slice_take(&whole, first, most, &request->permutation);
    }
    stream->offset += first;
    return stream->count = shuf__smaller(most, stream->count - first);
}

#endif
