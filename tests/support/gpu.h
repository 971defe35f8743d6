/* SPDX-License-Identifier: MIT
 *
 * Reads device memory for a test: any part of a mapping, not only the values that libshuf would
 * read.
 */
#ifndef SHUF__TEST_GPU_H
#define SHUF__TEST_GPU_H

#include <stddef.h>

/* Copies bytes from a CUdeviceptr of the first GPU's primary context, in which libshuf maps blocks.
 * Fails the running test on failure. */
void gpu_read(const void *device, size_t bytes, void *out);

#endif
