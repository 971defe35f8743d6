/* SPDX-License-Identifier: MIT
 *
 * The summary of a result that shufctl prints.
 */
#ifndef SHUF__SUMMARY_H
#define SHUF__SUMMARY_H

#include "output_options.h"

#include <stdio.h>

struct shuf__summary {
    const struct shuf__output_options *options;
    const shuf_result *result;
    const shuf_lease *lease; /* NULL: no lease was taken. Its data is not read */
    uint64_t seen_ns;        /* duration of the call, measured by this process */
};

/* As lines for people, and as JSON. */
void shuf__summary_print(const struct shuf__summary *summary, FILE *to);
void shuf__summary_json(const struct shuf__summary *summary, FILE *to);

/* The same for a request with --prefetch. */
void shuf__ready_print(const struct shuf__summary *summary, FILE *to);
void shuf__ready_json(const struct shuf__summary *summary, FILE *to);

#endif
