/* SPDX-License-Identifier: MIT
 *
 * The two halves of bench_requests.
 */
#ifndef SHUF__BENCH_REQUESTS_H
#define SHUF__BENCH_REQUESTS_H

#include "report.h"

/* The latency of requests of one client, next to torch.randperm in the process. */
void requests_latency(struct report *report, const char *backend);

/* Requests a second from 1 and from 64 connections, next to redis-benchmark's pings. `only`: rows
 * with this text in their names; NULL: all. */
void requests_rate(struct report *report, const char *backend, const char *only);

#endif
