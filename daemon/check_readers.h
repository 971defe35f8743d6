/* SPDX-License-Identifier: MIT
 *
 * Warnings of files of the daemon that only root can read. Root may read every file, so a check as
 * root finds no fault with them, but the service runs as another user.
 */
#ifndef SHUFD_CHECK_READERS_H
#define SHUFD_CHECK_READERS_H

#include "config/config.h"

/* Warns of the configuration file, the directory of keys, its files, and the directories above
 * them. Does nothing if the caller is not root. */
void shuf__check_readers(const struct shuf__config *config, const struct shuf__log *log);

#endif
