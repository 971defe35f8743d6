/* SPDX-License-Identifier: MIT
 *
 * A file without a name in $TMPDIR, for bytes that a pipe cannot give twice. It is gone when it is
 * closed, however the process ends.
 */
#ifndef SHUF__TEMPORARY_FILE_H
#define SHUF__TEMPORARY_FILE_H

/* Returns a descriptor, or -1 with errno. */
int shuf__temporary_file(void);

/* The directory of these files: $TMPDIR or /tmp. */
const char *shuf__temporary_directory(void);

#endif
