/* SPDX-License-Identifier: MIT
 *
 * A CUDA context for a benchmark's process, because a training process has one before its first
 * request. It loads libcuda at run time, so the benchmark itself needs no CUDA.
 */
#ifndef SHUF__BENCH_CONTEXT_H
#define SHUF__BENCH_CONTEXT_H

/* Makes the primary context of the GPU with that UUID ("GPU-...") current until the process ends.
 * Returns NULL, or the reason of a failure. */
const char *context_hold(const char *device_id);

#endif
