/* SPDX-License-Identifier: MIT
 *
 * The header of NumPy's .npy format: written in version 1.0, read in versions 1 to 3. The raw
 * values follow it.
 */
#ifndef SHUF__NPY_H
#define SHUF__NPY_H

#include "shuf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SHUF__NPY_HEADER_MAX = 192 };

/* Writes the header to `out` and returns its size, a multiple of 64. The array's shape is (rows,
 * count) with `batch`, else (count,). Not for BF16, which the format does not have. */
size_t shuf__npy_header(const shuf_shape *shape, bool batch, char out[SHUF__NPY_HEADER_MAX]);

/* ---- Reading ---- */

/* Each index of the first dimension selects one record. The header gives the number and the size of
 * the records. */

enum {
    SHUF__NPY_FRONT = 12,         /* bytes that shuf__npy_begins() reads at most */
    SHUF__NPY_DICT_MAX = 1 << 20, /* bytes of a header; numpy reads 10 000 */
    SHUF__NPY_WHY = 200,
    SHUF__NPY_TYPE = 16,
};

struct shuf__npy {
    size_t dict, header; /* offsets of the dict and of the data */
    uint64_t records, record, bytes;
    char type[SHUF__NPY_TYPE]; /* "<i8"; "" for a structure, cut off if it is longer */
};

/* True if the file begins like an .npy. Then `dict` and `header` of *npy are set, or both are 0 and
 * `why` has the error. */
bool shuf__npy_begins(const uint8_t *front, size_t size, struct shuf__npy *npy,
                      char why[SHUF__NPY_WHY]);

/* Fills in the rest from the header's dict. False on failure; then `why` has the error. */
bool shuf__npy_read(const char *dict, size_t size, struct shuf__npy *npy, char why[SHUF__NPY_WHY]);

#endif
