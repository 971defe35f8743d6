/* SPDX-License-Identifier: MIT
 *
 * Reads metrics in tests. A missing sample fails the test.
 */
#ifndef SHUF__TEST_METRICS_H
#define SHUF__TEST_METRICS_H

#include "support/harness.h"

/* The daemon's metrics, by its socket. metrics_read_openmetrics() gives OpenMetrics. The caller
 * frees the text. */
char *metrics_read(const struct harness *h);
char *metrics_read_openmetrics(const struct harness *h);

/* The value of the sample with that name and these labels, as in
 * `shufd_requests_total{kind="drop",status="OK"}`. */
double metrics_value(const char *text, const char *sample);

/* Reads the daemon's metrics and returns the value of one sample. */
double metrics_read_value(const struct harness *h, const char *sample);

#endif
