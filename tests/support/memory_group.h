/* SPDX-License-Identifier: MIT
 *
 * A control group of version 2 or 1 that limits the memory of a test. A test needs the right to
 * make such a group.
 */
#ifndef SHUF__TEST_MEMORY_GROUP_H
#define SHUF__TEST_MEMORY_GROUP_H

#include <stdbool.h>
#include <stdint.h>

/* Makes the group; returns false if this process has no right to. */
bool memory_group_make(uint64_t bytes);

/* Moves this process into the group, and back. Its running children stay in their groups. */
void memory_group_enter(void);
void memory_group_leave(void);

/* Processes of the group that the kernel has killed for their memory. */
uint64_t memory_group_kills(void);

/* Removes the group, which must have no processes. */
void memory_group_remove(void);

#endif
