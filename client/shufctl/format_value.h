/* SPDX-License-Identifier: MIT
 *
 * Formats a value of any type, given by its bits.
 */
#ifndef SHUF__FORMAT_VALUE_H
#define SHUF__FORMAT_VALUE_H

#include "shuf.h"

#include <stdbool.h>
#include <stddef.h>

enum { SHUF__VALUE_TEXT = 32 };

/* True for the floating-point types. */
bool shuf__value_is_fraction(shuf_dtype dtype);

/* The exact value of a floating-point type's bits. */
double shuf__value_of(shuf_dtype dtype, uint64_t bits);

/* Decimal text: a whole number, or the fewest digits that read back as the same double (F64) or
 * float (F32, F16, BF16); subnormal values may have more. Returns the length. */
size_t shuf__value_text(shuf_dtype dtype, uint64_t bits, char text[SHUF__VALUE_TEXT]);

/* The same for a value that was converted to a double. The text is "about ..." if the conversion
 * may have rounded the value. */
size_t shuf__value_text_of(shuf_dtype dtype, double value, char text[SHUF__VALUE_TEXT]);

/* A floating-point value as "%.*g" prints it, with the fewest digits that read back as the same
 * value. Tries 15 digits first (float: 6); 17 (float: 9) always read back. `wide` true: as a
 * double. `wide` false: as a float; `value` must then be a float. Returns the length. */
size_t shuf__fraction_text(double value, bool wide, char text[SHUF__VALUE_TEXT]);

#endif
