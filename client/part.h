/* SPDX-License-Identifier: MIT
 *
 * A part of a result: a request for some of its consecutive values. Any part can be requested,
 * because a value is a function of its position.
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

/* Makes a request for at most `most` values of `whole`, from number `first` on, counted row by row.
 * `request` is the meaning of `whole`, a PERMUTATION or STREAM. */
void shuf__part_make(struct shuf__part *part, const struct shuf__request_options *whole,
                     const struct shuf__request *request, uint64_t first, uint64_t most);

#endif
