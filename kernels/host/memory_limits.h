/* SPDX-License-Identifier: MIT
 *
 * The memory that this process may still take: the free memory of the machine, within the limits of
 * its control groups and, with vm.overcommit_memory = 2, of committed memory. A container and a
 * service's MemoryMax= set such limits.
 */
#ifndef SHUF__MEMORY_LIMITS_H
#define SHUF__MEMORY_LIMITS_H

#include "error.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The available and the total bytes. They are the same if there is no /proc/meminfo. Fails with
 * SHUF_IO if it lacks a number. */
shuf_status shuf__host_memory(uint64_t *available, uint64_t *total, struct shuf__error *error);

/* Does the same for tests: all paths that it reads begin with `root`. */
shuf_status shuf__host_memory_below(const char *root, uint64_t *available, uint64_t *total,
                                    struct shuf__error *error);

#ifdef __cplusplus
}
#endif

#endif
