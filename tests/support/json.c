/* SPDX-License-Identifier: MIT
 *
 * See json.h.
 */
#include "json.h"

#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

json_t *json_parse(char *text)
{
    json_error_t error;
    json_t *object = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    if (!object)
        fprintf(stderr, "%s: %s\n", error.text, text);
    assert_non_null(object);
    free(text);
    return object;
}

const json_t *json_member(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    if (!value)
        fprintf(stderr, "no member '%s'\n", key);
    assert_non_null(value);
    return value;
}

uint64_t json_member_integer(const json_t *object, const char *key)
{
    const json_t *value = json_member(object, key);
    assert_true(json_is_integer(value));
    return (uint64_t)json_integer_value(value);
}

const char *json_member_text(const json_t *object, const char *key)
{
    const json_t *value = json_member(object, key);
    assert_true(json_is_string(value));
    return json_string_value(value);
}

uint64_t json_member_hex(const json_t *object, const char *key)
{
    const char *text = json_member_text(object, key);
    assert_int_equal(strlen(text), 18);
    return strtoull(text, NULL, 16);
}
