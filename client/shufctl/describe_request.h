/* SPDX-License-Identifier: MIT
 *
 * Descriptions of a request, printed beside its result: as lines for people, and as JSON.
 */
#ifndef SHUF__DESCRIBE_REQUEST_H
#define SHUF__DESCRIBE_REQUEST_H

#include "output_options.h"

#include <jansson.h>
#include <stdio.h>

/* Prints one line: the key, then the formatted text. */
void shuf__print_line(FILE *to, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* If the request leaves a field to the daemon, such as the algorithm, the description takes it from
 * the result. */
void shuf__describe_request(const struct shuf__output_options *options, const shuf_result *result,
                            FILE *to);
void shuf__describe_request_json(const struct shuf__output_options *options,
                                 const shuf_result *result, json_t *object);

/* A short description, within a line. */
void shuf__describe_request_short(const struct shuf__output_options *options,
                                  const shuf_result *result, FILE *to);

/* The name of the distribution; "-" for an unknown one. */
const char *shuf__distribution_text(shuf_distribution distribution);

/* Indexed by shuf_method; NULL ends the list. */
extern const char *const shuf__method_names[];

/* "table", "box-muller"; "-" for an unknown one. */
const char *shuf__method_text(shuf_method method);

#endif
