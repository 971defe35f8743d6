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

/* The name, or the number of an unknown type. */
enum { SHUF__DTYPE_TEXT = 12 };
const char *shuf__dtype_label(int dtype, char number[SHUF__DTYPE_TEXT]);

/* The types that values of that distribution can have, one bit for each type.
 * SHUF_DISTRIBUTION_NONE gives the types of a permutation. */
unsigned shuf__dtype_set(enum shuf__distribution distribution);

/* Reads one type of the set, by its name or by its name in C, NumPy or PyTorch: "f32", "float32",
 * "torch.float32", "<f4". Fails with SHUF_INVALID. */
shuf_status shuf__dtype_parse(const char *field, const char *text, unsigned set, shuf_dtype *dtype,
                              struct shuf__error *error);

/* Bytes of a value: 2, 4 or 8; 0 for SHUF_AUTO and for an unknown number. */
unsigned shuf__dtype_bytes(int dtype);

/* Whether values of that distribution can have the type. SHUF_DISTRIBUTION_NONE asks about a
 * permutation. */
bool shuf__dtype_is_allowed(int dtype, enum shuf__distribution distribution);

#ifdef __cplusplus
}
#endif

#endif
