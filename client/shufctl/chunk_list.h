/* SPDX-License-Identifier: MIT
 *
 * The file of --chunks, which has the sizes of chunks, and the windowed order over them.
 */
#ifndef SHUF__CHUNK_LIST_H
#define SHUF__CHUNK_LIST_H

#include "number_list.h"
#include "shuf.h"

#include <argp.h>
#include <jansson.h>
#include <stdbool.h>

struct shuf__chunk_list {
    const char *path;
    struct shuf__numbers sizes;
    uint64_t window;
    shuf_chunks *order; /* of the epoch that was made last */
};

/* The options beside --chunks. */
struct shuf__beside_chunks {
    bool n, chunk, key, algorithm; /* it excludes them */
    bool window;                   /* it needs this one */
};

/* Ends the process if they are wrong. */
void shuf__chunk_list_check(struct argp_state *state, const struct shuf__beside_chunks *given);

/* Reads the file: an .npy of integers, or text with numbers between blanks, commas and line ends.
 * Then makes the order of a permutation's seed, epoch and window, and sets n to the sum of the
 * sizes. The window is then the list's and not the permutation's, which has none without `chunk`.
 * Ends the process as argp does. */
void shuf__chunk_list_read(struct argp_state *state, shuf_permutation *permutation,
                           struct shuf__chunk_list *list);

/* Makes the order of another epoch. */
shuf_status shuf__chunk_list_make(struct shuf__chunk_list *list, uint64_t seed, uint64_t epoch);

/* Frees the order and the sizes. */
void shuf__chunk_list_free(struct shuf__chunk_list *list);

/* The fields "chunks", their number, and "window". */
void shuf__json_chunks(json_t *object, const struct shuf__chunk_list *list);

#endif
