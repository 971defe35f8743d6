/* SPDX-License-Identifier: MIT
 *
 * The latency of a bystander: a client that sends small requests, one after the other, while other
 * clients load the daemon. A bound is relative to the latency of the same client without the load,
 * because other programs may use the machine too. All failures fail the running cmocka test.
 */
#ifndef SHUF__TEST_BYSTANDER_H
#define SHUF__TEST_BYSTANDER_H

#include "wire.h"

struct latency {
    double p50_ms, p99_ms, worst_ms;
};

/* A monotonic clock. */
double bystander_clock_ms(void);

/* Sends requests that the loop's thread computes, each for another permutation. Checks the replies,
 * and prints the latency with the name of the load. */
struct latency bystander_measure(const char *load, struct wire *w);

/* Does the same on a new connection. */
struct latency bystander_connect_and_measure(const char *load, const struct harness *h);

/* Does the same with larger requests, which wait for a turn of the device. */
struct latency bystander_measure_jobs(const char *load, struct wire *w);

/* Expects that both percentiles are at most these. */
void bystander_expect_below(const struct latency *got, double p50_ms, double p99_ms);

/* Expects about the latency without the load: p50 at most 5 times as long and 2 ms, p99 at most 5
 * times as long and 50 ms. With sanitizers the milliseconds are ten times as many. */
void bystander_expect_near(const struct latency *got, const struct latency *idle);

#endif
