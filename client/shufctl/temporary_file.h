/* SPDX-License-Identifier: MIT
 *
 * A file without a name in $TMPDIR, for a copy of a pipe, which can be read only once. The file
 * disappears when it is closed, even if a signal ends the process.
 */
#ifndef SHUF__TEMPORARY_FILE_H
#define SHUF__TEMPORARY_FILE_H

/* Returns a descriptor, or -1 with errno. */
int shuf__temporary_file(void);

/* The directory of these files: $TMPDIR or /tmp. */
const char *shuf__temporary_directory(void);

#endif
