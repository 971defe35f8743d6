/* SPDX-License-Identifier: MIT
 *
 * Device memory of the first GPU, for a test: in its primary context, in which libshuf maps blocks.
 * Each function fails the running test on failure.
 */
#ifndef SHUF__TEST_GPU_H
#define SHUF__TEST_GPU_H

#include <stdbool.h>
#include <stddef.h>

/* Whether the machine has a GPU. */
bool gpu_exists(void);

/* Copies from any part of a mapping, not only the values that libshuf would read. Waits for the
 * work of the default stream first, as gpu_write() does. */
void gpu_read(const void *device, size_t bytes, void *out);
void gpu_write(void *device, size_t bytes, const void *in);

/* gpu_free(NULL) does nothing. */
void *gpu_alloc(size_t bytes);
void gpu_free(void *device);

#endif
