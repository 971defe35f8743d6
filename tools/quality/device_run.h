/* SPDX-License-Identifier: MIT
 *
 * Runs of the tests that a GPU knows, as run.h and stream.h have those of all on the CPU. What was
 * asked for and is not among them is left out.
 */
#ifndef SHUF__QUALITY_DEVICE_RUN_H
#define SHUF__QUALITY_DEVICE_RUN_H

#include "run.h"
#include "stream.h"

enum { SHUF__DEVICE_N_MAX = 1 << 30 };

/* Of these permutations: `parallelograms`. */
shuf_status shuf__run_on_device(const char *spec, const struct shuf__task *task,
                                struct shuf__findings *findings, struct shuf__outcome *outcome,
                                struct shuf__error *error);

/* Of these streams: `lattice`, `cosines`, `norms`, `ties`, `signs` and `digits`; and with
 * `subsets`, over so many of the values, products over all sets of 2 to 5 positions. */
shuf_status shuf__stream_run_on_device(const char *spec, const struct shuf__stream_task *task,
                                       uint64_t subsets, struct shuf__findings *findings,
                                       struct shuf__stream_outcome *outcome,
                                       struct shuf__error *error);

#endif
