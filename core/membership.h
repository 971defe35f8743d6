/* SPDX-License-Identifier: MIT
 *
 * Users and groups by name, and how this user gets access to the files of a group. A process has
 * the groups that its user had at the login, and a later membership has no effect on it.
 */
#ifndef SHUF__MEMBERSHIP_H
#define SHUF__MEMBERSHIP_H

#include <sys/types.h>

enum { SHUF__ACCOUNT_NAME = 36, SHUF__MEMBERSHIP_ADVICE = 192 };

/* Writes the name, cut to the size of `text`, or without a name the number. */
void shuf__name_user(uid_t uid, char text[SHUF__ACCOUNT_NAME]);
void shuf__name_group(gid_t gid, char text[SHUF__ACCOUNT_NAME]);

/* Finds a group by its name, otherwise by its number. Returns 0; ENOENT if no group has the name
 * and it is no number; or the cause if the groups cannot be read. A number needs no group. */
int shuf__find_group(const char *name, gid_t *group);

/* Writes what makes this process's user a member of the group, or, if it is one in the database but
 * this process lacks the group, what makes the membership effective. A group without a name is one
 * outside the container of this process. */
void shuf__advise_membership(gid_t group, char text[SHUF__MEMBERSHIP_ADVICE]);

#endif
