/* SPDX-License-Identifier: MIT
 *
 * A file or standard input, read in a way that an interrupt ends.
 */
#ifndef SHUF__INPUT_H
#define SHUF__INPUT_H

#include "error.h"

#include <stdbool.h>
#include <stddef.h>

struct shuf__input {
    int fd;
    const char *name;
    bool begun; /* something was read */
};

/* A path, or "-". */
shuf_status shuf__input_open(struct shuf__input *input, const char *path,
                             struct shuf__error *error);

/* As many bytes as are wanted, fewer only at the end. SHUF_CANCELLED: interrupted. SHUF_INVALID: a
 * .npy begins there, whose header would pass for values. */
shuf_status shuf__input_read(struct shuf__input *input, void *bytes, size_t wanted, size_t *got,
                             struct shuf__error *error);

void shuf__input_close(const struct shuf__input *input);

#endif
