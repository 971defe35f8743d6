/* SPDX-License-Identifier: MIT
 *
 * Lists of whole numbers and of ratios. They grow.
 */
#ifndef SHUF__NUMBER_LIST_H
#define SHUF__NUMBER_LIST_H

#include "error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Begin it with zeros, and free `at`. */
struct shuf__numbers {
    uint64_t *at;
    size_t count, room;
};

/* `field` names the source of the number in errors. Fails with SHUF_NO_MEMORY. */
shuf_status shuf__numbers_add(struct shuf__numbers *numbers, const char *field, uint64_t number,
                              struct shuf__error *error);

/* ---- Ratios ---- */

/* A list of weights, as ratios and as whole numbers. Begin it with zeros. */
struct shuf__ratios {
    struct shuf__numbers numerators, denominators;
};

/* Reads one ratio (shuf__ratio_parse()). */
shuf_status shuf__ratios_add(struct shuf__ratios *ratios, const char *field, const char *text,
                             struct shuf__error *error);

/* Replaces the numerators by whole numbers in the same ratios, as small as possible. False if their
 * sum is 2^61 or more. */
bool shuf__ratios_make_whole(struct shuf__ratios *ratios);

void shuf__ratios_free(struct shuf__ratios *ratios);

#endif
