/* SPDX-License-Identifier: MIT
 *
 * The files of named keys. The file NAME has the 16 bytes of a key, or their 32 hex digits. The
 * optional file NAME.group names the group whose members may use the key. The directory of a
 * service's credentials, which systemd makes, has this form.
 */
#ifndef SHUFD_KEY_FILES_H
#define SHUFD_KEY_FILES_H

#include "key_set.h"

/* Reads all keys of the directory into *set. The caller has allocated set->bits. Ignores files
 * whose names begin with a dot. Fails with SHUF_IO, or with SHUF_INVALID for a file that is not a
 * key. The message never shows the contents of a file that may have a key. */
shuf_status shuf__key_files_read(const char *directory, struct shuf__key_set *set,
                                 struct shuf__error *error);

#endif
