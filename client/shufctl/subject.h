/* SPDX-License-Identifier: MIT
 *
 * What was asked for, told beside a result: in lines for people, and as JSON.
 */
#ifndef SHUF__SUBJECT_H
#define SHUF__SUBJECT_H

#include "order.h"

#include <jansson.h>
#include <stdio.h>

/* A line: the key, and what `format` makes. */
void shuf__subject_line(FILE *to, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The result tells what was left to the daemon. */
void shuf__subject_print(const struct shuf__order *order, const shuf_result *result, FILE *to);
void shuf__subject_json(const struct shuf__order *order, const shuf_result *result, json_t *object);

/* The same within a line. */
void shuf__subject_print_short(const struct shuf__order *order, const shuf_result *result,
                               FILE *to);

/* "gauss", "uniform"; "-" of one that is not known. */
const char *shuf__distribution_text(shuf_distribution distribution);

/* By their numbers, and NULL at the end. */
extern const char *const shuf__method_names[];

/* "table", "box-muller"; "-" of one that is not known. */
const char *shuf__method_text(shuf_method method);

#endif
