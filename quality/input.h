/* SPDX-License-Identifier: MIT
 *
 * A file or standard input, read in a way that an interrupt ends.
 */
#ifndef SHUF__INPUT_H
#define SHUF__INPUT_H

#include "error.h"

#include <stddef.h>

struct shuf__input {
    int fd;
    const char *name;
};

/* A path, or "-". */
shuf_status shuf__input_open(struct shuf__input *input, const char *path,
                             struct shuf__error *error);

/* As many bytes as are wanted, fewer only at the end. SHUF_CANCELLED: interrupted. */
shuf_status shuf__input_read(const struct shuf__input *input, void *bytes, size_t wanted,
                             size_t *got, struct shuf__error *error);

void shuf__input_close(const struct shuf__input *input);

#endif
