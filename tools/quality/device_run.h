/* SPDX-License-Identifier: MIT
 *
 * Runs tests on a GPU. It leaves out requested tests that the GPU does not support. run.h and
 * stream.h run all tests on the CPU.
 */
#ifndef SHUF__QUALITY_DEVICE_RUN_H
#define SHUF__QUALITY_DEVICE_RUN_H

#include "device.h"
#include "run.h"
#include "stream.h"

enum { SHUF__DEVICE_N_MAX = 1 << 30 };

/* Runs the test `parallelograms` on permutations. */
shuf_status shuf__run_on_device(const char *spec, const struct shuf__run_options *options,
                                struct shuf__findings *findings, struct shuf__outcome *outcome,
                                struct shuf__error *error);

/* Runs the tests `lattice`, `cosines`, `norms`, `ties`, `signs` and `digits` on streams. If
 * `subsets` is not 0, it also judges products over all sets of 2 to 5 positions, for the first
 * `subsets` values. */
shuf_status shuf__stream_run_on_device(const char *spec,
                                       const struct shuf__stream_run_options *options,
                                       uint64_t subsets, struct shuf__findings *findings,
                                       struct shuf__stream_outcome *outcome,
                                       struct shuf__error *error);

/* Judges the first `values` values at 12 frequencies, with one finding for each size of a set.
 * After an interrupt it judges only the frequencies that have seen all values. */
shuf_status shuf__device_judge_subsets(struct shuf__device *device,
                                       const struct shuf__stream_run_options *options,
                                       const struct shuf__device_stream *request, uint64_t values,
                                       struct shuf__findings *findings, struct shuf__error *error);

#endif
