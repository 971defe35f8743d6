/* SPDX-License-Identifier: MIT
 *
 * A CUDA context for a benchmark's process, as a training process would have one before it asks
 * for anything. Through libcuda, opened lazily: the benchmark itself needs no CUDA.
 */
#ifndef SHUF__BENCH_CONTEXT_H
#define SHUF__BENCH_CONTEXT_H

/* Makes the primary context of the GPU of that UUID ("GPU-...") current, and holds it until the
 * process ends. NULL, or why not. */
const char *context_hold(const char *device_id);

#endif
