/* SPDX-License-Identifier: MIT
 *
 * Parses the output of --json. A missing or wrong member fails the test.
 */
#ifndef SHUF__TEST_JSON_H
#define SHUF__TEST_JSON_H

#include <jansson.h>
#include <stdint.h>

/* Frees `text`. */
json_t *json_parse(char *text);

const json_t *json_member(const json_t *object, const char *key);
uint64_t json_member_integer(const json_t *object, const char *key);
const char *json_member_text(const json_t *object, const char *key);
uint64_t json_member_hex(const json_t *object, const char *key); /* a string of 16 digits */

#endif
