/* SPDX-License-Identifier: MIT
 *
 * What a Stream request means: the default filled in, every range checked. As
 * plan.h does for permutations: the daemon trusts only this, and the client
 * refuses by it, before anything is sent.
 */
#ifndef SHUF__STREAM_PLAN_H
#define SHUF__STREAM_PLAN_H

#include "error.h"
#include "shuf.pb-c.h"
#include "shuf/distribution.h"

#include <stdint.h>

struct shuf__stream_plan {
    enum shuf__distribution distribution; /* never NONE; the method as well */
    enum shuf_number number;
    uint64_t seed, stream;
    uint64_t offset, count; /* count >= 1, offset + count <= 2^62 */
    double mean, std;       /* mean is never -0; UNIFORM: both 0 */
    Shuf__Dtype dtype;      /* never AUTO */
    unsigned width;         /* bytes of a value: 2, 4 or 8 */
    uint64_t bytes;         /* count * width */
};

/* Fails with SHUF_INVALID, or SHUF_NO_MEMORY for a size past 2^63. */
shuf_status shuf__stream_plan_make(const Shuf__Stream *request, struct shuf__stream_plan *plan,
                                   struct shuf__error *error);

/* "gauss", "uniform", "box-muller"; "none" for any other. */
const char *shuf__distribution_name(unsigned distribution);

/* How the wire names a distribution: box-muller is a method of gauss. */
Shuf__Distribution shuf__distribution_of(unsigned distribution);
Shuf__Method shuf__method_of(unsigned distribution);

Shuf__Dtype shuf__dtype_of(enum shuf_number number);

/* "u32", "bf16"; "auto" of AUTO, NULL of one that is not known. */
const char *shuf__dtype_name(Shuf__Dtype dtype);

#endif
