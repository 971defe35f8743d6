/* SPDX-License-Identifier: MIT
 *
 * realpath(3) for output: it refuses links that another user may have planted, and the file need
 * not exist.
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
