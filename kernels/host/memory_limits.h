/* SPDX-License-Identifier: MIT
 *
 * The memory that this process may still take: that of the machine, within the limits of its
 * control groups (a container, a service's MemoryMax).
 */
#ifndef SHUF__MEMORY_LIMITS_H
#define SHUF__MEMORY_LIMITS_H

#include "error.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes. Fails with SHUF_IO where /proc/meminfo does not say. */
shuf_status shuf__host_memory(uint64_t *available, uint64_t *total, struct shuf__error *error);

/* The same with a prefix of all paths, for tests. */
shuf_status shuf__host_memory_below(const char *root, uint64_t *available, uint64_t *total,
                                    struct shuf__error *error);

#ifdef __cplusplus
}
#endif

#endif
