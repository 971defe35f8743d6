/* SPDX-License-Identifier: MIT
 *
 * The output of --json: one object. Numbers are plain and in base units (bytes, seconds). Seeds,
 * epochs and fingerprints use all 64 bits, which many JSON readers round, so they are strings.
 */
#ifndef SHUF__JSON_H
#define SHUF__JSON_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

/* Call before the other functions. Without memory the program then ends with EX_OSERR. */
void shuf__json_prepare(void);

void shuf__json_text(json_t *object, const char *key, const char *value);
void shuf__json_integer(json_t *object, const char *key, uint64_t value); /* below 2^63 */
void shuf__json_seconds(json_t *object, const char *key, uint64_t ns);
void shuf__json_decimal(json_t *object, const char *key,
                        uint64_t value); /* "18446744073709551615" */
json_t *shuf__json_decimal_string(uint64_t value);
json_t *shuf__json_array(const uint64_t *values, size_t count);       /* below 2^63 */
void shuf__json_hex(json_t *object, const char *key, uint64_t value); /* "0x0123456789abcdef" */

/* Prints and frees the object. Fractions have 12 digits, or 17, which are exact. */
void shuf__json_print(json_t *object, FILE *to);
void shuf__json_print_exact(json_t *object, FILE *to);

#endif
