/* SPDX-License-Identifier: MIT
 *
 * Runs tests on a GPU. It leaves out requested tests that the GPU does not support. run.h and
 * stream.h run all tests on the CPU.
 */
#ifndef SHUF__QUALITY_DEVICE_RUN_H
#define SHUF__QUALITY_DEVICE_RUN_H

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

#endif
