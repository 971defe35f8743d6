/* SPDX-License-Identifier: MIT
 *
 * The CUDA runtime on host memory, for tests without a GPU. Work is done when it is queued. Only a
 * host function runs in a thread, and its stream is busy until it ends.
 */
#ifndef SHUF__TEST_FAKE_CUDART_H
#define SHUF__TEST_FAKE_CUDART_H

#include <cuda_runtime.h>
#include <stdbool.h>
#include <stddef.h>

/* The number of allocations, streams and events that are not freed. */
size_t fake_cudart_live(void);

/* cudaMalloc() of more bytes fails in this thread. */
void fake_cudart_limit_malloc(size_t bytes);

#endif
