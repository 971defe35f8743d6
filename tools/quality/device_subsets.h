/* SPDX-License-Identifier: MIT
 *
 * Products of cosines over all sets of 2 to 5 positions of a block: what takes a matrix unit.
 */
#ifndef SHUF__QUALITY_DEVICE_SUBSETS_H
#define SHUF__QUALITY_DEVICE_SUBSETS_H

#include "device.h"
#include "stream.h"

/* Of the first `values`, at 12 frequencies; one finding for each size of set. Interrupted, it
 * judges the frequencies that have had all values. */
shuf_status shuf__device_judge_subsets(struct shuf__device *device,
                                       const struct shuf__stream_task *task,
                                       const struct shuf__device_stream *ask, uint64_t values,
                                       struct shuf__findings *findings, struct shuf__error *error);

#endif
