/* SPDX-License-Identifier: MIT
 *
 * Cost against n, as a CSV file and its picture. The benchmarks of all devices write this format,
 * so that their files can be joined:
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

/* Begins FILE.csv with its heading. Ends the program if it cannot be written. */
struct cost *cost_begin(const char *path);

/* Adds the time of a value, measured over `count` values of a permutation of [0, n). Prints it on
 * stdout too. Removes commas and quotes from the names. */
void cost_add(struct cost *cost, const char *device, const char *algorithm, uint64_t n,
              uint64_t count, double ns_per_value);

/* Closes the file. With gnuplot, draws FILE.svg beside it by bench/cost.gp. Frees `cost`. Returns
 * the exit code. */
int cost_end(struct cost *cost);

#ifdef __cplusplus
}
#endif

#endif
