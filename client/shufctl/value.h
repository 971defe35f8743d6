/* SPDX-License-Identifier: MIT
 *
 * One value of any type, by its bits.
 */
#ifndef SHUF__VALUE_H
#define SHUF__VALUE_H

#include "shuf.h"

enum { SHUF__VALUE_TEXT = 32 };

/* Whether the type's values may be fractions. */
bool shuf__value_is_fraction(shuf_dtype dtype);

/* What a fraction's bits stand for; exact. */
double shuf__value_of(shuf_dtype dtype, uint64_t bits);

/* In decimal: a whole number, or one of as few digits as read back as the same double (F64) or
 * float (F32, F16, BF16); of subnormal ones it may have more. Its length. */
size_t shuf__value_text(shuf_dtype dtype, uint64_t bits, char text[SHUF__VALUE_TEXT]);

/* The same of a value that was widened to a double; "about ..." where that has rounded it. */
size_t shuf__value_text_of(shuf_dtype dtype, double value, char text[SHUF__VALUE_TEXT]);

#endif
