/* SPDX-License-Identifier: MIT
 *
 * What shufctl tells of a result.
 */
#ifndef SHUF__SUMMARY_H
#define SHUF__SUMMARY_H

#include "order.h"

#include <stdio.h>

struct shuf__summary {
    const struct shuf__order *order;
    const shuf_result *result;
    const shuf_lease *lease; /* NULL: none was taken. What it tells is read, never its data */
    uint64_t seen_ns;        /* the whole call, by the clock of this process */
};

/* For people. */
void shuf__summary_print(const struct shuf__summary *summary, FILE *to);
void shuf__summary_json(const struct shuf__summary *summary, FILE *to);

/* The same of a result that only was made ready. */
void shuf__ready_print(const struct shuf__summary *summary, FILE *to);
void shuf__ready_json(const struct shuf__summary *summary, FILE *to);

#endif
