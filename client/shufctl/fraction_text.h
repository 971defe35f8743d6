/* SPDX-License-Identifier: MIT
 *
 * Floating-point values as decimal text, as "%.*g" prints them, with the fewest digits that read
 * back as the same value.
 */
#ifndef SHUF__FRACTION_TEXT_H
#define SHUF__FRACTION_TEXT_H

#include <stdbool.h>
#include <stddef.h>

enum { SHUF__FRACTION_TEXT = 32 };

/* Tries 15 digits first (float: 6); 17 (float: 9) always read back. `wide` true: as a double.
 * `wide` false: as a float; `value` must then be a float. Returns the length. */
size_t shuf__fraction_text(double value, bool wide, char text[SHUF__FRACTION_TEXT]);

#endif
