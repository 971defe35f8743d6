/* SPDX-License-Identifier: MIT
 *
 * A file of records: an .npy, which says itself how large they are, or a raw one.
 */
#ifndef SHUF__ARRAY_H
#define SHUF__ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct shuf__array {
    int fd;
    const char *name; /* for messages */
    char *header;     /* of an .npy, as it stands in the file; NULL: it is raw */
    size_t header_size;
    uint64_t records, record, bytes;
};

/* Opens the file at `path`; `record` is the size that the caller told of, 0: none. 0, or the exit
 * code after a line. */
int shuf__array_open(struct shuf__array *array, const char *path, uint64_t record);

/* Reads [offset, offset + size) of the records: not by a mapping, which would end this process
 * where the file is cut meanwhile. 0, or the exit code after a line. */
int shuf__array_read(const struct shuf__array *array, uint64_t offset, size_t size, void *out);

void shuf__array_close(struct shuf__array *array);

#endif
