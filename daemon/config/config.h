/* SPDX-License-Identifier: MIT
 *
 * The daemon's configuration: defaults, then a file, then the command line. params.def has the
 * keys. load.c finds the file and loads all three; config.c reads, compares and prints values.
 */
#ifndef SHUFD_CONFIG_H
#define SHUFD_CONFIG_H

#include "error.h"
#include "log.h"
#include "number.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef char shuf__config_TEXT[108];
typedef char shuf__config_PATH[108];
typedef char shuf__config_BACKEND[108];  /* as shuf__backend_open() takes it */
typedef char shuf__config_ENDPOINT[108]; /* of shuf__endpoint_parse() */
typedef char shuf__config_TEXTFILE[108]; /* the path of a file of metrics */
typedef uint64_t shuf__config_NUMBER;
typedef struct shuf__amount shuf__config_AMOUNT;
typedef uint64_t shuf__config_DURATION; /* nanoseconds */
typedef uint64_t shuf__config_MODE;     /* permission bits */
typedef uint64_t shuf__config_LEVEL;    /* enum shuf__log_level */
typedef uint64_t shuf__config_PLACE;    /* enum shuf__place */

/* Who computes results for the host, beside a GPU. */
enum shuf__place { SHUF__PLACE_AUTO, SHUF__PLACE_HOST, SHUF__PLACE_DEVICE };

enum { SHUF__CONFIG_PATH = 4096 };

enum shuf__config_key {
#define SHUF__PARAM(key, kind, standard, least, most, when, help) SHUF__CONFIG_##key,
#include "params.def"
#undef SHUF__PARAM
    SHUF__CONFIG_KEYS
};

/* The options of the command line. A value is NULL if its option is not given. */
struct shuf__config_source {
    const char *file; /* NULL: the default file, if it exists */
    bool no_file;     /* reads no file */
    const char *value[SHUF__CONFIG_KEYS];
};

struct shuf__config {
#define SHUF__PARAM(key, kind, standard, least, most, when, help) shuf__config_##kind key;
#include "params.def"
#undef SHUF__PARAM
    char file[SHUF__CONFIG_PATH]; /* the file that was read; "": none */
    int line[SHUF__CONFIG_KEYS];  /* the line of the file that sets this key; 0: none */
    char root[108]; /* ""; tests set it to a folder that replaces / for /proc and /sys */
    struct shuf__config_source source;
};

/* Sets every key to its default. */
void shuf__config_init(struct shuf__config *config);

/* Sets the defaults, then the values of the file, then those of the command line. Returns the exit
 * code, EX_OK on success. */
int shuf__config_load(struct shuf__config *config, const struct shuf__config_source *source,
                      struct shuf__error *error);

/* Sets the defaults, then the values of the file. */
shuf_status shuf__config_load_file(struct shuf__config *config,
                                   const struct shuf__config_source *source,
                                   struct shuf__error *error);

/* Sets the values of the command line, after shuf__config_load_file(). */
shuf_status shuf__config_set_options(struct shuf__config *config, struct shuf__error *error);

/* The path of the shufd.conf that belongs to the program at the path `program`. For /usr/bin/shufd
 * it is /etc/shufd/shufd.conf, for PREFIX/bin/shufd it is PREFIX/etc/shufd/shufd.conf. `sysconfdir`
 * is the directory that the build configured, absolute or below PREFIX. */
void shuf__config_path_of(const char *program, const char *sysconfdir,
                          char path[SHUF__CONFIG_PATH]);

enum { SHUF__CONFIG_ORIGIN = SHUF__CONFIG_PATH + 128 };

/* Writes which file the values come from: "configuration: FILE". Returns the text. */
const char *shuf__config_origin(const struct shuf__config *config, char text[SHUF__CONFIG_ORIGIN]);

/* Reads `key = value` lines into *config; other keys keep their values. Fails with SHUF_INVALID for
 * the first bad line: "FILE:LINE: key value: expected ...". Fails with SHUF_IO if the file cannot
 * be read or is not a regular file, because a pipe might never end. */
shuf_status shuf__config_read(struct shuf__config *config, const char *path,
                              struct shuf__error *error);

/* Sets one key from its text; fails with SHUF_INVALID. */
shuf_status shuf__config_set(struct shuf__config *config, const char *key, const char *value,
                             struct shuf__error *error);

/* If an error begins with a key that the file has set, puts "FILE:LINE: " before the text. Returns
 * the text. */
const char *shuf__config_locate(const struct shuf__config *config, struct shuf__error *error);

/* Logs a warning about a key of the configuration. The text must begin with the key. If the file
 * sets the key, the warning begins with the file and the line. */
void shuf__warn_of_config(const struct shuf__config *config, const struct shuf__log *log,
                          const char *format, ...) __attribute__((format(printf, 3, 4)));

struct shuf__config_change {
    const char *key;
    enum shuf__config_key number;
    bool needs_restart;
    char from[128], to[128]; /* the values as text */
};

/* Finds the next key with different values and advances *next, which is 0 at first. False: no other
 * key differs. */
bool shuf__config_diff(const struct shuf__config *from, const struct shuf__config *to, size_t *next,
                       struct shuf__config_change *change);

enum { SHUF__CONFIG_VALUE = SHUF__NUMBER_TEXT };

/* The value in the syntax of the file. Uses `text` for numbers. */
const char *shuf__config_value(const struct shuf__config *config, enum shuf__config_key key,
                               char text[SHUF__CONFIG_VALUE]);

/* True if the key has its default value. */
bool shuf__config_is_default(const struct shuf__config *config, enum shuf__config_key key);

/* Copies the keys that can change while the daemon runs. */
void shuf__config_update(struct shuf__config *config, const struct shuf__config *from);

/* The help of a key, for --help. */
struct shuf__config_help {
    const char *name, *value; /* the key, and a word for its value, such as SIZE */
    const char *text;         /* one or more lines */
    bool needs_restart;       /* a change takes effect at the next start */
};

struct shuf__config_help shuf__config_help(enum shuf__config_key key);

/* Converts a duration to milliseconds for a timer. Rounds up, so only 0 gives 0. */
static inline uint64_t shuf__config_ms(shuf__config_DURATION nanoseconds)
{
    return (nanoseconds + 999999) / 1000000;
}

/* Writes the configuration as a file that shuf__config_read() accepts, each key with its help. */
void shuf__config_print(const struct shuf__config *config, FILE *out);

/* Where a server listens: "off", "127.0.0.1:PORT" or "[::1]:PORT". Other addresses are refused,
 * because they would be open to other machines. */
struct shuf__endpoint {
    int family; /* AF_UNSPEC: off */
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } address;
    socklen_t length;
};

/* Reads an endpoint. Fails with SHUF_INVALID; the error begins with `field`. */
shuf_status shuf__endpoint_parse(const char *field, const char *text,
                                 struct shuf__endpoint *endpoint, struct shuf__error *error);

#endif
