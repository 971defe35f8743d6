/* SPDX-License-Identifier: MIT
 *
 * Keys of the lines that a person reads: bold on a terminal, unless NO_COLOR is set.
 */
#ifndef SHUF__PRINT_KEY_H
#define SHUF__PRINT_KEY_H

#include <stdio.h>

/* Prints the key, and blanks up to the column of the values. */
void shuf__print_key(FILE *to, const char *key);

#endif
