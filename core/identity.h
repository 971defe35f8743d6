/* SPDX-License-Identifier: MIT
 *
 * Who a process is: its user, its groups and its PID namespace. In a user namespace the kernel
 * shows every user and group that the namespace does not map as one number, the overflow id. There
 * this number has no rights, even if the daemon has it too. All functions are thread-safe.
 */
#ifndef SHUF__IDENTITY_H
#define SHUF__IDENTITY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

bool shuf__uid_is_overflow(uid_t uid);
bool shuf__gid_is_overflow(gid_t gid);

/* True for root and the user of this process. */
bool shuf__uid_is_privileged(uid_t uid);

enum { SHUF__ACCOUNT_NAME = 36, SHUF__MEMBERSHIP_ADVICE = 192 };

/* Writes the name, cut to the size of `text`, or without a name the number. */
void shuf__name_user(uid_t uid, char text[SHUF__ACCOUNT_NAME]);
void shuf__name_group(gid_t gid, char text[SHUF__ACCOUNT_NAME]);

/* Finds a group by its name, otherwise by its number. Returns 0; ENOENT if no group has the name
 * and it is no number; or the cause if the groups cannot be read. A number needs no group. */
int shuf__find_group(const char *name, gid_t *group);

/* A process has the groups that its user had at the login, and a later membership has no effect on
 * it. Writes what makes this process's user a member of the group, or, if it is one in the database
 * but this process lacks the group, what makes the membership effective. A group without a name is
 * one outside the container of this process. */
void shuf__advise_membership(gid_t group, char text[SHUF__MEMBERSHIP_ADVICE]);

enum { SHUF__PEER_GROUPS = 1024 };

/* Finds out whether the group is the primary group of the process at the other end of a Unix
 * socket, or one of its supplementary groups. The kernel recorded them when the process connected.
 * If the process has more than SHUF__PEER_GROUPS of these, none of them counts. False, with errno,
 * if the groups cannot be read. */
bool shuf__peer_find_group(int socket, gid_t group, bool *is_member);

/* The PID namespace of this process. A PID names a process only in its own namespace: in another
 * one, such as that of a container, another process may have the number. Returns the inode number
 * of the namespace; 0: unknown, for example without /proc. */
uint64_t shuf__pid_namespace(void);

#endif
