/* SPDX-License-Identifier: MIT
 *
 * The common part of bench_paper_cuda and bench_paper_cpu. They repeat the experiment of Mitchell,
 * Stokes, Frank, Holmes: "Bandwidth-optimal random shuffling for GPUs" (ACM TOPC 9(1), 2022, arXiv
 * 2106.06161) on this machine. A shuffle computes y[i] = x[p(i)] for arrays of u64. They have
 * 2^w + 1 items, or 2^w items in rows without compaction. Each row has five trials. Figures are in
 * millions of items a second:
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

/* Item i of every input. The factor is odd, so the index can be computed from the item. */
SHUF_FUNCTION uint64_t paper_item(uint64_t i)
{
    return i * UINT64_C(0x9E3779B97F4A7C15);
}

/* Returns i for paper_item(i), and a large number for most other words. */
SHUF_FUNCTION uint64_t paper_index(uint64_t item)
{
    return item * UINT64_C(0xF1DE83E19937733D);
}

struct paper {
    struct report *report;
    unsigned first, last; /* w */
};

/* Reads the options --csv FILE, --only ROW,ROW..., --sizes FIRST:LAST, and those of a report. */
struct paper *paper_begin(const char *title, int argc, char **argv);

/* Sets the device of the rows; call it before the first row. */
void paper_device(struct paper *paper, const char *device);

/* Whether the options select the row. */
bool paper_wants(const struct paper *paper, const char *row);

/* Adds the durations of trials with n items, in nanoseconds. Sorts them. */
void paper_add(struct paper *paper, const char *row, uint64_t n, double *ns, size_t trials);

/* Instead of paper_add(): prints the reason why the row has no figures. */
void paper_skip(struct paper *paper, const char *row, uint64_t n, const char *why);

/* Instead of paper_add(): prints the error of an output that is not a shuffle, or not the right
 * one. */
void paper_wrong(struct paper *paper, const char *row, uint64_t n, const char *why);

/* Writes the files and frees `paper`. Returns the exit code: 1 after paper_wrong(). */
int paper_end(struct paper *paper);

#ifdef __cplusplus
}
#endif

#endif
