/* SPDX-License-Identifier: MIT
 *
 * A whole computation of a windowed order (shuf/windowed.h) on the CPU.
 */
#ifndef SHUF__HOST_WINDOWED_H
#define SHUF__HOST_WINDOWED_H

#include "backend.h"
#include "simd/simd_ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Does the work of shuf__host_permute() for a permutation with windows. */
bool shuf__host_windowed(const struct shuf__simd_ops *simd, int threads,
                         const struct shuf__computation *computation, void *out);

/* How x / chunk is computed for narrow numbers x. */
void shuf__window_map_set_chunk(struct shuf__window_map *map, uint64_t chunk);

#ifdef __cplusplus
}
#endif

#endif
