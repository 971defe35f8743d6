/* SPDX-License-Identifier: MIT
 *
 * Sources of permutations. A kind of source is a small table of functions at the end of its file. A
 * source gives the requested rows and does not check them.
 */
#ifndef SHUF__SOURCE_H
#define SHUF__SOURCE_H

#include "error.h"
#include "shuf.h"
#include "test.h"

#include <stdbool.h>
#include <stddef.h>

struct shuf__generator;
struct shuf__pieces;

/* A source and its parameters. */
struct shuf__origin {
    const struct shuf__source_type *type;
    const struct shuf__generator *generator; /* for "generator" */
    unsigned rounds;
    const char *input;                 /* for "file": a path, or "-" */
    bool wide;                         /* for "file": values are u64, not u32 */
    const char *socket;                /* for "daemon"; NULL: the default */
    const char *algorithm;             /* for "daemon"; NULL: the default */
    const struct shuf__pieces *pieces; /* for "pieces": see order.h */
    uint64_t seed, epoch;              /* the seed and the epoch of row 0 */
    bool vary_seed;   /* row s has the seed seed + s; if not set, the epoch epoch + s */
    uint64_t modulus; /* the requested modulus; 0: the generator's */
};

/* The rows to read. */
struct shuf__row_request {
    uint64_t first;
    size_t count;
    enum shuf__relation relation;
    unsigned bit;
};

struct shuf__source_type {
    const char *name;
    bool parallel;  /* threads may read at the same time; if not set, in order and one at a time */
    bool relatives; /* the source has seeds and epochs */
    bool data;      /* an error means that the data are wrong, not the request */
    size_t state;   /* bytes of a source's state, which is zeros at first */
    shuf_status (*open)(void *state, const struct shuf__origin *, uint32_t n, struct shuf__error *);
    /* Reads rows. *count is their number, and is less than requested only at the end. */
    shuf_status (*read)(void *state, const struct shuf__row_request *, uint32_t *rows,
                        size_t *count, struct shuf__error *);
    void (*close)(void *state);
};

extern const struct shuf__source_type shuf__source_generator, shuf__source_file,
    shuf__source_daemon;

/* The modulus of differences of a row's values; 0: none. */
uint64_t shuf__origin_modulus(const struct shuf__origin *origin, uint32_t n);

/* The seed and epoch of the row number `row`. */
struct shuf__place {
    uint64_t seed, epoch;
};

struct shuf__place shuf__place_of(const struct shuf__origin *origin, enum shuf__relation relation,
                                  unsigned bit, uint64_t row);

/* Checks that all rows are permutations. If not, it fails with SHUF_INVALID and an error that names
 * the row and the value. `first` is the number of the first row. `marks` has room for n / 32 + 1
 * words. */
shuf_status shuf__rows_check(uint32_t n, const uint32_t *rows, size_t count, uint64_t first,
                             uint32_t *marks, struct shuf__error *error);

/* ---- Interrupts and input ---- */

/* Makes SIGINT and SIGTERM end the current run; later runs then end immediately. So the process can
 * still print a report of the rows that it has seen. A second signal ends the process. */
void shuf__catch_interrupts(void);
bool shuf__interrupted(void);

/* A file or standard input. An interrupt ends a read. */
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
