/* SPDX-License-Identifier: MIT
 *
 * The measurements of `shufctl bench`. Each one repeats for two seconds, and at least three times.
 */
#ifndef SHUF__BENCH_ROWS_H
#define SHUF__BENCH_ROWS_H

#include "shuf.h"

#include <stdint.h>

struct shuf__bench_row {
    const char *name;
    uint64_t ns;     /* the best time; for requests the median */
    uint64_t values; /* values computed in this time; 0: the row has only a time */
    unsigned width;  /* bytes of a value */
    char why[128];   /* why it was skipped; "": it was not */
};

struct shuf__bench {
    const char *name;
    /* Fails as calls of the library do, with the message in the handle. */
    shuf_status (*run)(shuf *handle, uint64_t n, struct shuf__bench_row *row);
};

/* Ends with a row without a function. */
extern const struct shuf__bench shuf__benches[];

#endif
