/* SPDX-License-Identifier: MIT
 *
 * The files of named keys: NAME has the 16 bytes of a key, or their 32 hex digits; NAME.group, if
 * there is one, the group whose members may use the key. systemd makes such a directory of the
 * service's credentials.
 */
#ifndef SHUFD_KEY_FILES_H
#define SHUFD_KEY_FILES_H

#include "key_set.h"

/* Reads all keys of the directory into *set, whose `bits` are there. Files whose names begin with a
 * dot are no keys. Fails with SHUF_IO, or with SHUF_INVALID for a file that is no key; the message
 * never has contents of a file. */
shuf_status shuf__key_files_read(const char *directory, struct shuf__key_set *set,
                                 struct shuf__error *error);

#endif
