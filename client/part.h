/* SPDX-License-Identifier: MIT
 *
 * A part of a result: a request for some of its consecutive values. Any part can be requested,
 * because a value is a function of its position.
 */
#ifndef SHUF__PART_H
#define SHUF__PART_H

#include "request_message.h"

struct shuf__part {
    shuf_request request;
    uint64_t values;
};

/* Makes a request for at most `most` values of `whole`, a PERMUTATION or NUMBERS, from number
 * `first` on, counted row by row. `meaning` is the meaning of `whole`. */
void shuf__part_make(struct shuf__part *part, const shuf_request *whole,
                     const struct shuf__request *meaning, uint64_t first, uint64_t most);

#endif
