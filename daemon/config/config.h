/* SPDX-License-Identifier: MIT
 *
 * The daemon's configuration: defaults, then a file, then the command line. params.def has the
 * keys.
 */
#ifndef SHUFD_CONFIG_H
#define SHUFD_CONFIG_H

#include "amount.h"
#include "error.h"
#include "log.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef char shuf__config_TEXT[108];
typedef uint64_t shuf__config_NUMBER;
typedef struct shuf__amount shuf__config_AMOUNT; /* of memory */
typedef uint64_t shuf__config_MODE;              /* permission bits */
typedef uint64_t shuf__config_LEVEL;             /* enum shuf__log_level */

struct shuf__config {
#define SHUF__PARAM(key, kind, standard, least, most, help) shuf__config_##kind key;
#include "params.def"
#undef SHUF__PARAM
    bool backend_is_option; /* `backend` comes from the command line */
    char root[108];         /* a prefix of paths in /proc and /sys: "", but for tests */
};

/* Sets every key to its default. */
void shuf__config_init(struct shuf__config *config);

/* Reads `key = value` lines into *config; other keys keep their values. Fails with SHUF_IO, or with
 * SHUF_INVALID for the first bad line: "FILE:LINE: key value: expected ...". A path that names no
 * regular file is SHUF_IO too: a pipe might never end. */
shuf_status shuf__config_read(struct shuf__config *config, const char *path,
                              struct shuf__error *error);

/* Sets one key from its text; fails with SHUF_INVALID. */
shuf_status shuf__config_set(struct shuf__config *config, const char *key, const char *value,
                             struct shuf__error *error);

/* Writes a file that shuf__config_read takes, each key with its help. */
void shuf__config_print(const struct shuf__config *config, FILE *out);

#endif
