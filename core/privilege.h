/* SPDX-License-Identifier: MIT
 *
 * Which users may do more than others. In a user namespace the kernel shows every user and group
 * that the namespace does not map as one number, the overflow id. There this number has no rights,
 * even if the daemon has it too. All functions are thread-safe.
 */
#ifndef SHUF__PRIVILEGE_H
#define SHUF__PRIVILEGE_H

#include <stdbool.h>
#include <sys/types.h>

bool shuf__uid_is_overflow(uid_t uid);
bool shuf__gid_is_overflow(gid_t gid);

/* True for root and the user of this process. */
bool shuf__uid_is_privileged(uid_t uid);

#endif
