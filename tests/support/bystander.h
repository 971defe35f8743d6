/* SPDX-License-Identifier: MIT
 *
 * Loads on a daemon. The latency of a bystander: a client that sends small requests, one after the
 * other, while other clients load the daemon. Other programs of the machine must not fail a test.
 * So the bystander and the daemon's loop run at the highest priority meanwhile, if the test may set
 * it. A bound is relative to the latency without the load. All failures fail the running cmocka
 * test.
 */
#ifndef SHUF__TEST_BYSTANDER_H
#define SHUF__TEST_BYSTANDER_H

#include "support/wire.h"

struct latency {
    double p50_ms, p99_ms, worst_ms;
};

/* A monotonic clock. */
double bystander_clock_ms(void);

/* Sends requests that the loop's thread computes, each for another permutation. Checks the replies,
 * and prints the latency with the name of the load. */
struct latency bystander_measure(const char *load, struct wire *w);

/* Measures, and expects about the latency without the load: p50 at most 5 times as long and 2 ms,
 * p99 at most 5 times as long and 100 ms, and the worst at most 2 s. With sanitizers the times that
 * are added, and the worst, are five times as long. Other programs may disturb a measurement, so
 * p50 and p99 have three attempts. */
void bystander_expect_near(const char *load, struct wire *w, const struct latency *idle);

/* Measures larger requests, which wait for a turn of the device. Expects that no number is above
 * that of `most`; p50 and p99 have three attempts too. */
void bystander_expect_jobs_below(const char *load, struct wire *w, const struct latency *most);

/* ---- Sockets whose close() takes long ---- */

/* Returns one, which does not linger yet. It has unsent bytes to a reader that does not read. */
int lingering_make(void);

/* From now on the close() of the last copy takes long, or no longer does. */
void lingering_arm(int fd);
void lingering_disarm(int fd);

/* Closes the readers, which ends all waits. */
void lingering_end_all(void);

#endif
