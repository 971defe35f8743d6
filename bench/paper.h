/* SPDX-License-Identifier: MIT
 *
 * What bench_paper_cuda and bench_paper_cpu share: the experiment of Mitchell, Stokes, Frank,
 * Holmes: "Bandwidth-optimal random shuffling for GPUs" (ACM TOPC 9(1), 2022, arXiv 2106.06161),
 * on the machine at hand. Arrays of u64, y[i] = x[p(i)], of 2^w + 1 items, or of 2^w in rows
 * where nothing is left out; five trials each, in millions of items a second.
 *
 *   device,algorithm,n,million_items_per_s
 *   NVIDIA H200,gather,257,81.2
 */
#ifndef SHUF__BENCH_PAPER_H
#define SHUF__BENCH_PAPER_H

#include "report.h"
#include "shuf/inline.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { PAPER_TRIALS = 5, PAPER_SEED = 7, PAPER_FIRST = 8, PAPER_LAST = 29 };

/* Item i of every input, which tells its index. Its factor is odd. */
SHUF_FUNCTION uint64_t paper_item(uint64_t i)
{
    return i * UINT64_C(0x9E3779B97F4A7C15);
}

/* i of paper_item(i); something large of most that were never an item. */
SHUF_FUNCTION uint64_t paper_index(uint64_t item)
{
    return item * UINT64_C(0xF1DE83E19937733D);
}

struct paper {
    struct report *report;
    unsigned first, last; /* w */
};

/* Reads the options: --csv FILE, --only ROW,ROW..., --sizes FIRST:LAST, and those of a report. */
struct paper *paper_begin(const char *title, int argc, char **argv);

/* What the rows are measured on; before the first of them. */
void paper_device(struct paper *paper, const char *device);

/* Is the row asked for? */
bool paper_wants(const struct paper *paper, const char *row);

/* Durations of trials with n items, in nanoseconds. Sorts them. */
void paper_add(struct paper *paper, const char *row, uint64_t n, double *ns, size_t trials);

/* Instead of paper_add(), a line that says why there are no figures. */
void paper_not_there(struct paper *paper, const char *row, uint64_t n, const char *why);

/* Instead of paper_add(), where what was made is not a shuffle, or not the right one. */
void paper_wrong(struct paper *paper, const char *row, uint64_t n, const char *why);

/* Writes the files; returns the exit code, 1 after paper_wrong(). Frees. */
int paper_end(struct paper *paper);

#ifdef __cplusplus
}
#endif

#endif
