/* SPDX-License-Identifier: MIT
 *
 * Device memory as a test sees it: any part of what is mapped, not only the values
 * that libshuf would read.
 */
#ifndef SHUF__TEST_GPU_H
#define SHUF__TEST_GPU_H

#include <stddef.h>

/* Copies bytes at a CUdeviceptr of the first GPU's primary context, which is where libshuf maps
 * them. Fails the running test when that fails. */
void gpu_read(const void *device, size_t bytes, void *out);

#endif
