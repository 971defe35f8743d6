/* SPDX-License-Identifier: MIT
 *
 * The output file. A regular file is written without a name (O_TMPFILE), or under a temporary name
 * if the file system has no O_TMPFILE. It replaces its target when it is complete, so nobody sees a
 * partial file. Standard output, devices and pipes are written directly. A signal that ends the
 * process removes the temporary name first.
 */
#ifndef SHUF__OUTPUT_H
#define SHUF__OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- The path given to --out ---- */

/* The number that "-", /dev/stdout, /dev/fd/N and their like name; -1 for any other name. */
int shuf__output_path_descriptor(const char *path);

bool shuf__output_path_is_terminal(const char *path);

/* True for an inherited descriptor, a pipe or a device: its name does not show a format. */
bool shuf__output_path_is_direct(const char *path);

/* ---- The file ---- */

struct shuf__output {
    int fd;
    int cause;        /* errno of the failed write, or 0 */
    const char *name; /* for messages */
    char *path;       /* the path that the file replaces; NULL: the output is written directly */
    bool unnamed;     /* the file has no name until the commit */
};

/* Both return EX_OK, or print one line and return the exit code. `binary` output to a terminal is
 * rejected. At most one output is open at a time. A reservation fails at once if the bytes do not
 * fit; in tmpfs a later write may fail all the same. */
int shuf__output_open(struct shuf__output *output, const char *path, bool binary);
int shuf__output_reserve(struct shuf__output *output, uint64_t bytes);

/* False on failure; then call shuf__output_failed(), which prints one line and returns the exit
 * code. */
bool shuf__output_write(struct shuf__output *output, const void *bytes, size_t size);
int shuf__output_failed(const struct shuf__output *output);

/* The same for any descriptor. False with errno. */
bool shuf__write_all(int fd, const void *bytes, size_t size);

/* Writes to a regular file from `offset` on. Several threads may call it. Returns 0 or errno. */
int shuf__output_write_at(const struct shuf__output *output, uint64_t offset, const void *bytes,
                          size_t size);

/* Replaces the target by the written file. Returns EX_OK, or prints one line and returns the exit
 * code.
 */
int shuf__output_commit(struct shuf__output *output);

/* For a handler of a signal that ends the process. */
void shuf__output_remove_temporary(void);

/* Closes and frees. A file that was not committed is deleted. */
void shuf__output_close(struct shuf__output *output);

#endif
