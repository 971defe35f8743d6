/* SPDX-License-Identifier: MIT
 *
 * A client of the daemon of harness.h, for tests of libshuf: its handle, its errors, the comparison
 * of a whole permutation, and the metrics of a daemon.
 */
#ifndef SHUF__TEST_CLIENT_H
#define SHUF__TEST_CLIENT_H

#include "shuf.h"
#include "support/harness.h"

/* Connects to harness_shared, or to this daemon; fails the test if it cannot. */
shuf *client_open(void);
shuf *client_open_at(const struct harness *h);

/* Expects that a call gave this status, and a message with these words. */
void client_expect(const shuf *handle, shuf_status got, shuf_status expected, const char *words);
void client_expect_ok(const shuf *handle, shuf_status got);

/* An observer that adds the number of lost connections to the `unsigned` in the context. */
void client_count_lost(void *context, shuf_event event, uint64_t done, uint64_t all);

/* Requests the permutation into memory and compares all of it. Any thread or process may call
 * it. */
bool client_check(shuf *handle, const shuf_request *request);

/* ---- Metrics. A missing sample fails the test ---- */

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
