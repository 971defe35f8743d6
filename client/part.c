/* SPDX-License-Identifier: MIT
 *
 * See part.h.
 */
#include "part.h"

#include "slice.h"

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Whole rows. */
static void take_rows(struct shuf__part *part, uint64_t row, uint64_t rows, uint64_t count)
{
    part->request.permutation.epoch += row;
    part->request.permutation.epochs = rows;
    part->values = rows * count;
}

/* Values of one row, from number `i` on. If the last value of a padded shard comes from the front
 * of the permutation, it is a part of its own. */
static void take_slice(struct shuf__part *part, const struct shuf__permutation *p, uint64_t row,
                       uint64_t i, uint64_t most)
{
    const struct shuf__slice slice = shuf__slice_make(p);
    uint64_t count = least(most, p->count - i);
    if (count > 1 && i + count == p->count && shuf__slice_wraps(&slice))
        count--;
    shuf_permutation *const own = &part->request.permutation;
    own->epoch = p->epoch + row;
    own->epochs = 0;
    own->view = SHUF_VIEW_SLICE;
    own->offset = shuf__slice_position(&slice, i);
    own->count = count;
    own->stride = p->stride;
    own->rank = own->world = own->step = 0;
    own->drop_last = false;
    part->values = count;
}

static void take_permutation(struct shuf__part *part, const struct shuf__permutation *p,
                             uint64_t first, uint64_t most)
{
    const uint64_t row = first / p->count, i = first % p->count;
    if (i == 0 && most >= p->count)
        take_rows(part, row, least(most / p->count, p->rows - row), p->count);
    else
        take_slice(part, p, row, i, most);
    part->request.permutation.fingerprint = false;
}

static void take_numbers(struct shuf__part *part, const struct shuf__stream *stream, uint64_t first,
                         uint64_t most)
{
    part->request.numbers.offset += first;
    part->request.numbers.count = part->values = least(most, stream->count - first);
    part->request.numbers.fingerprint = false;
}

void shuf__part_make(struct shuf__part *part, const shuf_request *whole,
                     const struct shuf__request *meaning, uint64_t first, uint64_t most)
{
    *part = (struct shuf__part){.request = *whole};
    if (whole->kind == SHUF_PERMUTATION)
        take_permutation(part, &meaning->permutation, first, most);
    else
        take_numbers(part, &meaning->stream, first, most);
}
