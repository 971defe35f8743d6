/* SPDX-License-Identifier: MIT
 *
 * Writes metrics as text, in the format of Prometheus or of OpenMetrics. A family is all samples of
 * one metric. An exemplar is the id of one request that a count includes. The two formats differ in
 * the header of a family, in exemplars, and in the last line.
 */
#ifndef SHUFD_EXPOSITION_H
#define SHUFD_EXPOSITION_H

#include "stats.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum shuf__exposition_format { SHUF__EXPOSITION_PROMETHEUS, SHUF__EXPOSITION_OPENMETRICS };

enum shuf__metric_type {
    SHUF__METRIC_COUNTER,
    SHUF__METRIC_GAUGE,
    SHUF__METRIC_HISTOGRAM,
    SHUF__METRIC_INFO,
};

struct shuf__metric {
    const char *name; /* without _total and _info */
    enum shuf__metric_type type;
    const char *unit;   /* "seconds", "bytes", or "" */
    const char *labels; /* names of the labels, such as "kind, status", for docs/metrics.md */
    const char *help;
};

struct shuf__exposition {
    FILE *out;
    enum shuf__exposition_format format;
    const char *common;                /* labels of every sample, or "" */
    const struct shuf__metric *family; /* the family that is being written */
    uint64_t now_ns;                   /* the time by uv_hrtime() */
    double now_seconds;                /* the same time in seconds since 1970 */
    bool hides_requests;               /* writes no exemplars, as they name requests of all users */
};

void shuf__exposition_begin_family(struct shuf__exposition *x, const struct shuf__metric *family);

/* Write one sample of the family. `labels` has the form `kind="permute",status="OK"`, or is NULL.
 * The caller must pass label values that come from outside through shuf__exposition_escape(). */
void shuf__exposition_number(struct shuf__exposition *x, const char *labels, uint64_t value);
void shuf__exposition_seconds(struct shuf__exposition *x, const char *labels, uint64_t ns);
void shuf__exposition_real(struct shuf__exposition *x, const char *labels, double value);

/* Writes all samples of a histogram. In the format OpenMetrics they have exemplars. */
void shuf__exposition_histogram(struct shuf__exposition *x, const char *labels,
                                const struct shuf__histogram *histogram);

void shuf__exposition_end(struct shuf__exposition *x);

enum { SHUF__LABEL_TEXT = 272 };

/* Copies the text and escapes \, " and line ends as both formats require. Returns `out`. */
const char *shuf__exposition_escape(char out[SHUF__LABEL_TEXT], const char *text);

#endif
