/* SPDX-License-Identifier: MIT
 *
 * The header of NumPy's .npy format, version 1.0; the raw values follow it.
 */
#ifndef SHUF__NPY_H
#define SHUF__NPY_H

#include "shuf.h"

enum { SHUF__NPY_HEADER_MAX = 192 };

/* Of any dtype but BF16, for which the format has none. Writes it to `out` and returns its size, a
 * multiple of 64. With `batch` the array is (rows, count), else (count,). */
size_t shuf__npy_header(const shuf_shape *shape, bool batch, char out[SHUF__NPY_HEADER_MAX]);

#endif
