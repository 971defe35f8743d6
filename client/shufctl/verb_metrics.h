/* SPDX-License-Identifier: MIT
 *
 * Reads metrics in the text format of Prometheus: one sample at a time.
 */
#ifndef SHUF__VERB_METRICS_H
#define SHUF__VERB_METRICS_H

#include <stdbool.h>

enum { SHUF__SAMPLE_LABELS = 8, SHUF__SAMPLE_TEXT = 280 };

struct shuf__metric_label {
    char name[32], value[SHUF__SAMPLE_TEXT];
};

struct shuf__metric_sample {
    char name[96];
    struct shuf__metric_label label[SHUF__SAMPLE_LABELS];
    unsigned labels;
    double value;
};

/* Reads the next sample at or after *at, and moves *at to its end. False at the end of the text, or
 * at the first line that is not a sample. */
bool shuf__metric_sample_next(const char **at, struct shuf__metric_sample *sample);

/* The value of that label, or "". */
const char *shuf__metric_label_of(const struct shuf__metric_sample *sample, const char *name);

#endif
