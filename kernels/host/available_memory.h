/* SPDX-License-Identifier: MIT
 *
 * The memory that this process may still take, by the machine and by the limits of its control
 * groups (a container, a service's MemoryMax).
 */
#ifndef SHUF__HOST_AVAILABLE_MEMORY_H
#define SHUF__HOST_AVAILABLE_MEMORY_H

#include "error.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Available and total bytes. Fails with SHUF_IO if /proc/meminfo lacks them. */
shuf_status shuf__host_memory(uint64_t *available, uint64_t *total, struct shuf__error *error);

#ifdef __cplusplus
}
#endif

#endif
