/* SPDX-License-Identifier: MIT
 *
 * The groups of the process at the other end of a Unix socket. The kernel recorded them when the
 * process connected.
 */
#ifndef SHUFD_PEER_GROUPS_H
#define SHUFD_PEER_GROUPS_H

#include <stdbool.h>
#include <sys/types.h>

enum { SHUF__PEER_GROUPS = 1024 };

/* Finds out whether the group is the primary group of the process or one of its supplementary
 * groups. If the process has more than SHUF__PEER_GROUPS of these, none of them counts. False, with
 * errno, if the groups cannot be read. */
bool shuf__peer_find_group(int socket, gid_t group, bool *is_member);

#endif
