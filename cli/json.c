/* SPDX-License-Identifier: MIT
 *
 * See json.h.
 */
#include "json.h"

#include "exit.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sysexits.h>

/* Without this, Jansson leaves out values for which there is no memory, and the program succeeds.
 */
static void *allocate(size_t size)
{
    void *memory = malloc(size);
    if (!memory)
        exit(shuf__fail_with(EX_OSERR, "JSON: out of memory"));
    return memory;
}

void shuf__json_prepare(void)
{
    json_set_alloc_funcs(allocate, free);
}

void shuf__json_text(json_t *object, const char *key, const char *value)
{
    json_t *text = json_string(value);
    json_object_set_new(object, key, text ? text : json_string("")); /* NULL: not UTF-8 */
}

void shuf__json_integer(json_t *object, const char *key, uint64_t value)
{
    json_object_set_new(object, key, json_integer((json_int_t)value));
}

void shuf__json_seconds(json_t *object, const char *key, uint64_t ns)
{
    json_object_set_new(object, key, json_real((double)ns / 1e9));
}

json_t *shuf__json_decimal_string(uint64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, value);
    return json_string(text);
}

void shuf__json_decimal(json_t *object, const char *key, uint64_t value)
{
    json_object_set_new(object, key, shuf__json_decimal_string(value));
}

json_t *shuf__json_array(const uint64_t *values, size_t count)
{
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(array, json_integer((json_int_t)values[i]));
    return array;
}

void shuf__json_hex(json_t *object, const char *key, uint64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "0x%016" PRIx64, value);
    json_object_set_new(object, key, json_string(text));
}

static void print(json_t *object, FILE *to, size_t precision)
{
    json_dumpf(object, to, JSON_INDENT(2) | JSON_REAL_PRECISION(precision));
    fputc('\n', to);
    json_decref(object);
}

void shuf__json_print(json_t *object, FILE *to)
{
    print(object, to, 12);
}

void shuf__json_print_exact(json_t *object, FILE *to)
{
    print(object, to, 17);
}
