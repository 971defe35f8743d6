/* SPDX-License-Identifier: MIT
 *
 * The records of a file or a pipe. The input is an .npy, whose header has the size of a record, or
 * raw.
 */
#ifndef SHUF__ARRAY_H
#define SHUF__ARRAY_H

#include <stddef.h>
#include <stdint.h>

struct shuf__array {
    int fd;
    const char *name; /* for messages */
    char *header;     /* of an .npy, byte for byte; NULL: the file is raw */
    size_t header_size;
    uint64_t records, record, bytes;
};

/* Opens the file at `path`; - is standard input. The records of a pipe are copied to a temporary
 * file first. record: bytes of a record, 0 where the user gave no size. Returns
 * EX_OK, or prints one line and returns the exit code. */
int shuf__array_open(struct shuf__array *array, const char *path, uint64_t record);

/* Reads [offset, offset + size) of the records. Returns EX_OK, or prints one line and returns the
 * exit code.
 */
int shuf__array_read(const struct shuf__array *array, uint64_t offset, size_t size, void *out);

void shuf__array_close(struct shuf__array *array);

/* ---- Temporary files ---- */

/* A file without a name in $TMPDIR, for a copy of a pipe, which can be read only once. The file
 * disappears when it is closed, even if a signal ends the process. */

/* Returns a descriptor, or -1 with errno. */
int shuf__temporary_file(void);

/* The directory of these files: $TMPDIR or /tmp. */
const char *shuf__temporary_directory(void);

#endif
