/* SPDX-License-Identifier: MIT
 *
 * Writes the header of NumPy's .npy format, version 1.0. The raw values follow it.
 */
#ifndef SHUF__NPY_H
#define SHUF__NPY_H

#include "shuf.h"

enum { SHUF__NPY_HEADER_MAX = 192 };

/* Writes the header to `out` and returns its size, a multiple of 64. The array's shape is (rows,
 * count) with `batch`, else (count,). Not for BF16, which the format does not have. */
size_t shuf__npy_header(const shuf_shape *shape, bool batch, char out[SHUF__NPY_HEADER_MAX]);

#endif
