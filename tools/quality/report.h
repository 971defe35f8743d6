/* SPDX-License-Identifier: MIT
 *
 * Prints findings: a table for people, a JSON object for programs.
 */
#ifndef SHUF__REPORT_H
#define SHUF__REPORT_H

#include "options.h"

#include <jansson.h>
#include <stdio.h>

/* The results for one n of a run. */
struct shuf__case {
    uint32_t n;
    struct shuf__outcome outcome;
};

struct shuf__report {
    const struct shuf__quality_options *options;
    struct shuf__findings findings; /* with their verdicts */
    struct shuf__case *cases;
    unsigned case_count;
    bool interrupted;
};

/* Writes a text such as "philox24, 8 rounds, seed 7, epochs from 0". */
void shuf__report_origin(const struct shuf__origin *origin, char *text, size_t size);

void shuf__report_table(const struct shuf__report *report, bool all, FILE *to);
void shuf__report_json(const struct shuf__report *report, FILE *to);

/* Makes an object with the fields that every report has: version, source, alpha. */
json_t *shuf__report_object(const struct shuf__quality_options *options);
json_t *shuf__report_region(const struct shuf__region *region);

/* Adds the fields of a finding to the object. */
void shuf__report_finding(json_t *object, const struct shuf__finding *f);

/* Prints the report as a table or object, and returns the exit code. */
int shuf__report_finish(struct shuf__report *report, bool all);

#endif
