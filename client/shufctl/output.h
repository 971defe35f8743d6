/* SPDX-License-Identifier: MIT
 *
 * Where values are written: a regular file without a name, or where the file
 * system has no such thing under a temporary one, which takes its target's place
 * when it is whole, so that nobody ever sees a part of it; standard output, a
 * device or a pipe directly. A signal that ends the process removes a temporary
 * name first.
 */
#ifndef SHUF__OUTPUT_H
#define SHUF__OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct shuf__output {
    int fd;
    int cause;        /* errno of a write that failed, or 0 */
    const char *name; /* for messages */
    char *target;     /* what the file becomes; NULL: written directly */
    bool unnamed;     /* until it is whole */
};

/* Both write a line and give the exit code on failure; 0 else. `binary` output
 * to a terminal is refused. At most one output is open at a time. */
int shuf__output_open(struct shuf__output *output, const char *path, bool binary);
int shuf__output_reserve(struct shuf__output *output, uint64_t bytes);

/* False when it failed; shuf__output_failed then says how. */
bool shuf__output_write(struct shuf__output *output, const void *bytes, size_t size);
int shuf__output_failed(const struct shuf__output *output);

/* Makes the target what was written. 0, or the exit code after a line. */
int shuf__output_commit(struct shuf__output *output);

/* Closes and frees; what was not committed is gone. */
void shuf__output_close(struct shuf__output *output);

#endif
