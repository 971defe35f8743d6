/* SPDX-License-Identifier: MIT
 *
 * What each kind of request (request.h) has. Only for the files of core that implement kinds:
 * adding a kind means its checks, such a table, and a row in kind.c.
 */
#ifndef SHUF__KIND_H
#define SHUF__KIND_H

#include "request.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct shuf__kind {
    const char *name;                                                 /* of shuf__request_name() */
    bool has_permutation;                                             /* its first member */
    struct shuf__shape (*shape)(const struct shuf__request *request); /* NULL: it has no result */
    /* The kinds, keys and, except for a PERMUTATION, types are equal. */
    int (*compare)(const struct shuf__request *a, const struct shuf__request *b);
    void (*describe)(const struct shuf__request *request, bool all, char *text);
};

extern const struct shuf__kind shuf__permutation_kind, shuf__stream_kind, shuf__shuffle_kind,
    shuf__look_up_kind, shuf__buffer_kind, shuf__exchange_kind;

/* ---- For shape() ---- */

static inline struct shuf__shape shuf__shape_of(uint64_t rows, uint64_t count, uint64_t width)
{
    return (struct shuf__shape){rows, count, width, rows * count * width};
}

/* ---- For compare() ---- */

#define SHUF__RETURN_UNLESS_EQUAL(a, b) \
    do {                                \
        if ((a) != (b))                 \
            return (a) < (b) ? -1 : 1;  \
    } while (0)

int shuf__permutation_compare(const struct shuf__permutation *a, const struct shuf__permutation *b);

/* ---- For describe() ---- */

/* Appends to the text. */
#define SHUF__ADD(text, ...) \
    snprintf((text) + strlen(text), SHUF__REQUEST_TEXT - strlen(text), __VA_ARGS__)

/* Adds ", key NAME" or ", seed SEED". */
void shuf__add_key(const struct shuf__request *request, uint64_t seed, char *text);

/* Adds the algorithm, key and epoch of the request's permutation. */
void shuf__add_permutation(const struct shuf__request *request, char *text);

/* ---- For the checks ---- */

/* Fails with SHUF_INVALID if no permutation can have this n. */
shuf_status shuf__check_n(uint64_t n, struct shuf__error *error);

/* Checks chunk and window. With a single window the order is uniform, and both become 0. */
shuf_status shuf__check_windows(struct shuf__permutation *p, struct shuf__error *error);

/* For kinds whose permutation cannot have windows: `what` is the kind, for the message. */
shuf_status shuf__refuse_windows(const struct shuf__permutation *p, const char *what,
                                 struct shuf__error *error);

/* Takes the whole permutation as one row. */
void shuf__permutation_take_row(struct shuf__permutation *p);

#endif
