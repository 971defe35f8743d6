/* SPDX-License-Identifier: MIT
 *
 * Blocks of host memory, for both backends. The host's processors allocate, export and copy them,
 * and compute their fingerprints.
 */
#ifndef SHUF__HOST_HOST_H
#define SHUF__HOST_HOST_H

#include "backend.h"
#include "simd/simd_ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The number of threads to use; 0 asks for all processors that this process may use. */
int shuf__host_threads(unsigned requested);

/* Allocates a block of host memory, after a check of the free memory. Without the check, the kernel
 * would promise more memory than it has, and kill the daemon when the daemon fills the block. */
shuf_status shuf__host_alloc(enum shuf__memory kind, uint64_t bytes, struct shuf__block *block,
                             struct shuf__error *error);
void shuf__host_free(struct shuf__block *block);

/* The functions export_block (for MEMFD), mapped and committed of struct shuf__backend_ops. */
int shuf__host_export(const struct shuf__block *block);
enum shuf__mapped shuf__host_mapped(const struct shuf__block *block);
uint64_t shuf__host_committed(const struct shuf__block *block);

uint64_t shuf__host_fingerprint(const struct shuf__simd_ops *simd, int threads, const void *values,
                                unsigned width, uint64_t count, uint64_t index);

/* Copies with several threads. They also share the page faults of new memory. */
void shuf__host_copy(int threads, void *to, const void *from, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
