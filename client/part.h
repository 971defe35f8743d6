/* SPDX-License-Identifier: MIT
 *
 * A part of a result: the request for some consecutive values of it. A value is a function of its
 * position, so a part is a request like any other.
 */
#ifndef SHUF__PART_H
#define SHUF__PART_H

#include "request_message.h"

struct shuf__part {
    struct shuf__request_options options; /* points at one of these two */
    shuf_permutation permutation;
    shuf_numbers numbers;
    uint64_t values;
};

/* Makes the request for value number `first` of `whole`, counted row by row, and those behind it:
 * `most` values or fewer. `request` is the meaning of `whole`, a PERMUTATION or STREAM. */
void shuf__part_make(struct shuf__part *part, const struct shuf__request_options *whole,
                     const struct shuf__request *request, uint64_t first, uint64_t most);

#endif
