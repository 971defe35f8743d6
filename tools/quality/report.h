/* SPDX-License-Identifier: MIT
 *
 * Prints findings: a table for people, a JSON object for programs.
 */
#ifndef SHUF__REPORT_H
#define SHUF__REPORT_H

#include "error.h"
#include "exit.h"
#include "options.h"
#include "stream.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <sysexits.h>

/* ---- Failures ---- */

enum { SHUF__EXIT_FAILED = 1 };

/* Prints the error's line and returns the exit code of its status. With `data` the input is wrong,
 * and the code is EX_DATAERR. */
static inline int shuf__quality_fail_error(const struct shuf__error *error, shuf_status status,
                                           bool data)
{
    return shuf__fail_with(data ? EX_DATAERR : shuf__exit_code(status), "%s", error->text);
}

/* ---- Permutations ---- */

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

/* ---- Streams ---- */

struct shuf__stream_report {
    const struct shuf__stream_origin *origin;
    const struct shuf__stream_law *law;
    struct shuf__findings findings; /* with their verdicts */
    struct shuf__stream_outcome outcome;
};

void shuf__stream_table(const struct shuf__stream_report *report, FILE *to);
void shuf__stream_json(const struct shuf__stream_report *report, FILE *to);

/* Writes a text such as "gauss, seed 7, stream 0". */
void shuf__stream_origin_text(const struct shuf__stream_origin *origin, char *text, size_t size);

/* The expected probability of a cell of the histogram. */
double shuf__stream_cell_p(const struct shuf__stream_law *law, unsigned cell);

#endif
