/* SPDX-License-Identifier: MIT
 *
 * Cost against n, as a CSV file and its picture: what the benchmarks of all devices
 * write, so that their files can be put together.
 *
 *   device,algorithm,n,count,ns_per_value
 *   AMD EPYC 1 thread,primefold,257,257,1.21
 */
#ifndef SHUF__BENCH_COST_H
#define SHUF__BENCH_COST_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct cost;

/* The sizes, ascending: 2^w - 1, 2^w and 2^w + 1 for w = 8 .. 33; 0 past the end. */
uint64_t cost_size(unsigned index);

/* FILE.csv, with its heading; ends the program where it cannot be written. */
struct cost *cost_begin(const char *path);

/* `count` values of a permutation of [0, n) took so long each. Shown on stdout too. Commas and
 * quotes in the names are left out. */
void cost_add(struct cost *cost, const char *device, const char *algorithm, uint64_t n,
              uint64_t count, double ns_per_value);

/* Closes it, and draws FILE.svg beside it where there is gnuplot: bench/cost.gp. Returns the exit
 * code. Frees. */
int cost_end(struct cost *cost);

#ifdef __cplusplus
}
#endif

#endif
