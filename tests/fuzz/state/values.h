/* SPDX-License-Identifier: MIT
 *
 * The values that the daemon must give for a request, by the inline functions of the algorithms.
 */
#ifndef SHUF__FUZZ_VALUES_H
#define SHUF__FUZZ_VALUES_H

#include "shuf/key.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { VALUES_RANKS = 5 };

enum values_kind {
    VALUES_UNKNOWN, /* not checked */
    VALUES_PERMUTATION,
    VALUES_UNIFORM,
    VALUES_PLAN,      /* of an exchange */
    VALUES_ONE_SIDED, /* plan of a single part, for ranks of a single window */
};

/* One permutation of primefold, or its inverse. n is 0 if there is none. */
struct values_order {
    uint64_t n, epoch;
    shuf_key key;
    bool inverse;
};

/* Value i of row r stands at position (offset + i * stride) mod n of the permutation of epoch
 * order.epoch + r. A shuffled result has its records in the order `shuffled`. */
struct values {
    enum values_kind kind;
    unsigned width; /* bytes of a value */
    struct values_order order, shuffled;
    uint64_t rows, count, offset, stride;
    uint64_t stream;                                    /* of a uniform stream */
    uint64_t rank, world;                               /* of a plan */
    uint64_t input[VALUES_RANKS], output[VALUES_RANKS]; /* records of each rank */
};

/* The value of the permutation, or its position, at place `i`. */
uint64_t values_place(const struct values_order *order, uint64_t i);

/* Value number `i` of the result, counted over its rows. Not for plans. */
uint64_t values_at(const struct values *values, uint64_t i);

/* Ends the process if one of the checked values in memory is wrong: some of many, all of few. */
void values_check(const struct values *values, const void *memory);

/* The same for the first and the last values of a result, as a reply has them. */
void values_check_ends(const struct values *values, const uint64_t *first, size_t n_first,
                       const uint64_t *last, size_t n_last);

#endif
