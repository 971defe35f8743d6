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
    part->permutation.epoch += row;
    part->permutation.epochs = rows;
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
    part->permutation = (shuf_permutation){
        .algorithm = part->permutation.algorithm,
        .n = p->n,
        .seed = p->seed,
        .key = part->permutation.key,
        .epoch = p->epoch + row,
        .view = SHUF_VIEW_SLICE,
        .offset = shuf__slice_position(&slice, i),
        .count = count,
        .stride = p->stride,
        .dtype = part->permutation.dtype,
    };
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
    part->permutation.fingerprint = false;
    part->options.permutation = &part->permutation;
}

static void take_numbers(struct shuf__part *part, const struct shuf__stream *stream, uint64_t first,
                         uint64_t most)
{
    part->numbers.offset += first;
    part->numbers.count = part->values = least(most, stream->count - first);
    part->numbers.fingerprint = false;
    part->options.numbers = &part->numbers;
}

void shuf__part_make(struct shuf__part *part, const struct shuf__request_options *whole,
                     const struct shuf__request *request, uint64_t first, uint64_t most)
{
    *part = (struct shuf__part){0};
    if (whole->permutation) {
        part->permutation = *whole->permutation;
        take_permutation(part, &request->permutation, first, most);
    } else {
        part->numbers = *whole->numbers;
        take_numbers(part, &request->stream, first, most);
    }
}
