/* SPDX-License-Identifier: MIT
 *
 * What the header of a .npy file says of its array, versions 1 to 3: how many records,
 * which are what one index of the first dimension selects, and of how many bytes.
 */
#ifndef SHUF__NPY_READ_H
#define SHUF__NPY_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SHUF__NPY_FRONT = 12,         /* bytes that shuf__npy_begins() looks at, where there are more */
    SHUF__NPY_DICT_MAX = 1 << 20, /* of a header; numpy itself reads 10 000 */
    SHUF__NPY_WHY = 200,
};

struct shuf__npy {
    size_t dict, header; /* where its dict stands, and where the data do */
    uint64_t records, record, bytes;
};

/* Whether it is a .npy file by its magic; then *npy has `dict` and `header`, or 0 for both where
 * `why` tells what is wrong. */
bool shuf__npy_begins(const uint8_t *front, size_t size, struct shuf__npy *npy,
                      char why[SHUF__NPY_WHY]);

/* Fills in the rest from the header's dict; false where `why` tells what is wrong. */
bool shuf__npy_read(const char *dict, size_t size, struct shuf__npy *npy, char why[SHUF__NPY_WHY]);

#endif
