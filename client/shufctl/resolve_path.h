/* SPDX-License-Identifier: MIT
 *
 * Like realpath(3), but for output: the file need not exist, and links that another user may have
 * made as a trap are refused.
 */
#ifndef SHUF__RESOLVE_PATH_H
#define SHUF__RESOLVE_PATH_H

#include <errno.h>

/* errno: the path leads through a symbolic link that another user owns, in a directory where
 * everybody may create files. */
#define SHUF__FOREIGN_LINK EXDEV

/* Resolves all symbolic links. The last component may be missing. The caller frees the result.
 * Returns NULL with errno on failure. */
char *shuf__resolve_path(const char *path);

#endif
