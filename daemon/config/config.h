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
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef char shuf__config_TEXT[108];
typedef char shuf__config_ENDPOINT[108]; /* endpoint.h */
typedef char shuf__config_TEXTFILE[108]; /* a path, of metrics */
typedef uint64_t shuf__config_NUMBER;
typedef struct shuf__amount shuf__config_AMOUNT; /* of memory */
typedef uint64_t shuf__config_DURATION;          /* nanoseconds */
typedef uint64_t shuf__config_MODE;              /* permission bits */
typedef uint64_t shuf__config_LEVEL;             /* enum shuf__log_level */

enum { SHUF__CONFIG_PATH = 4096 };

enum shuf__config_key {
#define SHUF__PARAM(key, kind, standard, least, most, when, help) SHUF__CONFIG_##key,
#include "params.def"
#undef SHUF__PARAM
    SHUF__CONFIG_KEYS
};

/* The options of the command line. NULL: as configured. */
struct shuf__config_source {
    const char *file; /* NULL: the default file, if it exists */
    bool no_file;     /* read none */
    const char *value[SHUF__CONFIG_KEYS];
};

struct shuf__config {
#define SHUF__PARAM(key, kind, standard, least, most, when, help) shuf__config_##kind key;
#include "params.def"
#undef SHUF__PARAM
    char file[SHUF__CONFIG_PATH]; /* that was read; "": none */
    int line[SHUF__CONFIG_KEYS];  /* of the file, with this key; 0: none */
    char root[108];               /* a prefix of paths in /proc and /sys: "", but for tests */
    struct shuf__config_source source;
};

/* Sets every key to its default. */
void shuf__config_init(struct shuf__config *config);

/* The defaults, then the file, then the command line. Returns the exit code, EX_OK on success. */
int shuf__config_load(struct shuf__config *config, const struct shuf__config_source *source,
                      struct shuf__error *error);

/* The same without the command line. */
shuf_status shuf__config_load_file(struct shuf__config *config,
                                   const struct shuf__config_source *source,
                                   struct shuf__error *error);

/* Then sets the values of the command line. */
shuf_status shuf__config_set_options(struct shuf__config *config, struct shuf__error *error);

/* The path of shufd.conf that belongs to the program at `program`: /etc/shufd/shufd.conf for
 * /usr/bin/shufd, PREFIX/etc/shufd/shufd.conf for PREFIX/bin/shufd. `sysconfdir`: the directory of
 * the build, absolute or below PREFIX. */
void shuf__config_path_of(const char *program, const char *sysconfdir,
                          char path[SHUF__CONFIG_PATH]);

/* Reads `key = value` lines into *config; other keys keep their values. Fails with SHUF_IO, or with
 * SHUF_INVALID for the first bad line: "FILE:LINE: key value: expected ...". A path that names no
 * regular file is SHUF_IO too: a pipe might never end. */
shuf_status shuf__config_read(struct shuf__config *config, const char *path,
                              struct shuf__error *error);

/* Sets one key from its text; fails with SHUF_INVALID. */
shuf_status shuf__config_set(struct shuf__config *config, const char *key, const char *value,
                             struct shuf__error *error);

/* Puts "FILE:LINE: " before an error that begins with a key, if the file gave this key its value.
 * Returns the text. */
const char *shuf__config_locate(const struct shuf__config *config, struct shuf__error *error);

struct shuf__config_change {
    const char *key;
    enum shuf__config_key number;
    bool needs_restart;
    char from[128], to[128]; /* the values as text */
};

/* Finds the next key whose values differ, from *next on, which is 0 at first. False at the end. */
bool shuf__config_diff(const struct shuf__config *from, const struct shuf__config *to, size_t *next,
                       struct shuf__config_change *change);

/* Copies the keys that can change while the daemon runs. */
void shuf__config_update(struct shuf__config *config, const struct shuf__config *from);

/* The help of a key, for --help. */
struct shuf__config_help {
    const char *name, *value; /* the key, and a word for its value, as SIZE */
    const char *text;         /* lines */
};

struct shuf__config_help shuf__config_help(enum shuf__config_key key);

/* For timers: a duration that is not 0 is at least 1 ms. */
static inline uint64_t shuf__config_ms(shuf__config_DURATION nanoseconds)
{
    return (nanoseconds + 999999) / 1000000;
}

/* Writes a file that shuf__config_read takes, each key with its help. */
void shuf__config_print(const struct shuf__config *config, FILE *out);

#endif
