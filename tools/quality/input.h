/* SPDX-License-Identifier: MIT
 *
 * Reads a file or standard input. An interrupt ends a read.
 */
#ifndef SHUF__INPUT_H
#define SHUF__INPUT_H

#include "error.h"

#include <stdbool.h>
#include <stddef.h>

struct shuf__input {
    int fd;
    const char *name;
    bool begun; /* whether any bytes have been read */
};

/* Opens a file. `path` "-" means standard input. */
shuf_status shuf__input_open(struct shuf__input *input, const char *path,
                             struct shuf__error *error);

/* Reads `size` bytes, or fewer at the end. SHUF_CANCELLED: the read was interrupted. SHUF_INVALID:
 * the input is a .npy file, and its header would count as values. */
shuf_status shuf__input_read(struct shuf__input *input, void *bytes, size_t size, size_t *got,
                             struct shuf__error *error);

void shuf__input_close(const struct shuf__input *input);

#endif
