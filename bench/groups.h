/* SPDX-License-Identifier: MIT
 *
 * Control groups of the processor, nested as systemd nests them: one group for system services, one
 * for users, and one for each user in it. Groups beside each other have the same weight. Works with
 * version 1 and version 2 of control groups, and needs root.
 */
#ifndef SHUF__BENCH_GROUPS_H
#define SHUF__BENCH_GROUPS_H

#include <sys/types.h>

enum group { GROUP_SERVICES, GROUP_USERS, GROUP_BYSTANDER, GROUP_HOSTILE, GROUPS };

/* Makes the groups, and removes them at exit. Call it before the first process is started, because
 * a group can be removed only after its processes have ended. */
void groups_make(void);

/* Moves a process into a group, with all its threads. */
void group_join(enum group group, pid_t pid);

#endif
