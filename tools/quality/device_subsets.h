/* SPDX-License-Identifier: MIT
 *
 * Products of cosines over all sets of 2 to 5 positions of a block. They need a GPU, because they
 * are a product of large matrices.
 */
#ifndef SHUF__QUALITY_DEVICE_SUBSETS_H
#define SHUF__QUALITY_DEVICE_SUBSETS_H

#include "device.h"
#include "stream.h"

/* Judges the first `values` values at 12 frequencies, with one finding for each size of a set.
 * After an interrupt it judges only the frequencies that have seen all values. */
shuf_status shuf__device_judge_subsets(struct shuf__device *device,
                                       const struct shuf__stream_run_options *options,
                                       const struct shuf__device_stream *request, uint64_t values,
                                       struct shuf__findings *findings, struct shuf__error *error);

#endif
