/* SPDX-License-Identifier: MIT
 *
 * A control group of a test, with a limit of memory. Of version 2 or 1, wherever this process may
 * make one.
 */
#ifndef SHUF__TEST_MEMORY_GROUP_H
#define SHUF__TEST_MEMORY_GROUP_H

#include <stdbool.h>
#include <stdint.h>

/* Makes the group; false where this process may not. */
bool memory_group_make(uint64_t bytes);

/* Moves this process into the group, and back. Its children stay where they were started. */
void memory_group_enter(void);
void memory_group_leave(void);

/* Processes of the group that the kernel has killed for their memory. */
uint64_t memory_group_kills(void);

/* Removes the group, in which no process is left. */
void memory_group_remove(void);

#endif
