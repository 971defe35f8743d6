/* SPDX-License-Identifier: MIT
 *
 * The host's processors and memory, for both backends: threads, blocks of memory, and the copies,
 * fingerprints and sums of their contents.
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

/* Starts the team of the calling thread, which has this number of threads, before its first
 * computation: OpenMP ends the process if it cannot start a thread. For a smaller team OpenMP ends
 * threads, and for a larger one it starts them again. Fails with SHUF_IO if the
 * system does not allow so many, and `later` more, which the process starts later. */
shuf_status shuf__threads_start(int threads, int later, struct shuf__error *error);

/* Allocates a block of host memory, after a check of the free memory. Without the check, the kernel
 * would promise more memory than it has, and kill the daemon when the daemon fills the block. */
shuf_status shuf__host_alloc(enum shuf__memory kind, uint64_t bytes, struct shuf__block *block,
                             struct shuf__error *error);
void shuf__host_free(struct shuf__block *block);

/* The functions export_block (for MEMFD), mapped and committed of struct shuf__backend_ops. */
int shuf__host_export(const struct shuf__block *block);
enum shuf__mapped shuf__host_mapped(const struct shuf__block *block);
uint64_t shuf__host_committed(const struct shuf__block *block);

/* Copies with several threads. They also share the page faults of new memory. */
void shuf__host_copy(int threads, void *to, const void *from, size_t bytes);

uint64_t shuf__host_fingerprint(const struct shuf__simd_ops *simd, int threads, const void *values,
                                unsigned width, uint64_t count, uint64_t index);

/* Does the work of ops->sums (backend.h). The number of threads does not change the bits of the
 * sums. count >= 1. */
void shuf__host_sums(int threads, const void *values, shuf_dtype dtype, uint64_t count,
                     double centre, double scale, struct shuf__sums *sums);

#ifdef __cplusplus
}
#endif

#endif
