/* SPDX-License-Identifier: MIT
 *
 * Traits of the types of values (shuf_dtype.h).
 */
#ifndef SHUF__DTYPE_H
#define SHUF__DTYPE_H

#include "error.h"
#include "shuf/distribution.h"
#include "shuf_dtype.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { SHUF__DTYPES = SHUF_BF16 + 1 };

/* "u32", "bf16"; "auto" for SHUF_AUTO; NULL for an unknown number. Static storage. */
const char *shuf__dtype_name(int dtype);

/* Bytes of a value: 2, 4 or 8; 0 for SHUF_AUTO and for an unknown number. */
unsigned shuf__dtype_bytes(int dtype);

/* Whether values of that distribution, or of a permutation for SHUF_DISTRIBUTION_NONE, can have the
 * type. */
bool shuf__dtype_is_allowed(int dtype, enum shuf__distribution distribution);

#ifdef __cplusplus
}
#endif

#endif
