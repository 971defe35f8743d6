/* SPDX-License-Identifier: MIT
 *
 * The path given to --out: it can name an inherited descriptor, a terminal, a symbolic link or a
 * regular file.
 */
#ifndef SHUF__OUTPUT_PATH_H
#define SHUF__OUTPUT_PATH_H

#include <errno.h>
#include <stdbool.h>

/* The number that "-", /dev/stdout, /dev/fd/N and their like name; -1 for any other name. */
int shuf__output_path_descriptor(const char *path);

/* Duplicates an inherited descriptor to one above 2. Returns -1 with errno; EBADF for a descriptor
 * that this process opened itself. */
int shuf__output_path_duplicate(int descriptor);

bool shuf__output_path_is_terminal(const char *path);

/* True for an inherited descriptor, a pipe or a device: its name does not show a format. */
bool shuf__output_path_is_direct(const char *path);

/* ---- symbolic links ---- */

/* Like realpath(3), but for output: the file need not exist, and links that another user may have
 * made as a trap are refused. */

/* errno: the path leads through a symbolic link that another user owns, in a directory where
 * everybody may create files. */
#define SHUF__FOREIGN_LINK EXDEV

/* Resolves all symbolic links. The last component may be missing. The caller frees the result.
 * Returns NULL with errno on failure. */
char *shuf__resolve_path(const char *path);

#endif
