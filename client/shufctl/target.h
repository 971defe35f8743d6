/* SPDX-License-Identifier: MIT
 *
 * What a name given to --out stands for: a descriptor that this process was
 * started with, a terminal, a link to somewhere else, or just a file.
 */
#ifndef SHUF__TARGET_H
#define SHUF__TARGET_H

#include <stdbool.h>

/* The number that "-", /dev/stdout, /dev/fd/N and their like name; -1 for any other name. */
int shuf__target_descriptor(const char *path);

/* A descriptor of our own, above 2, for one that was handed to this process; -1
 * and errno. What this process opened itself is not there to be named. */
int shuf__target_duplicate(int descriptor);

bool shuf__target_is_terminal(const char *path);

/* The name behind all symbolic links, also of a file that does not exist yet;
 * freed by the caller. NULL and errno. */
char *shuf__target_resolve(const char *path);

#endif
