/* SPDX-License-Identifier: MIT
 *
 * Reads the plain-text tables of tests/vectors, for tests that compare with them.
 */
#ifndef SHUF__GOLDEN_H
#define SHUF__GOLDEN_H

#include "sanitized.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Opens vectors/`name`. Exits with a message if it does not exist. */
FILE *golden_open(const char *name);

/* The next row that is not a comment, without its newline; NULL at the end. It is valid until the
 * next call. */
char *golden_line(FILE *table);

/* With a sanitizer, a test that computes a whole permutation for each row takes one of so many
 * rows. */
enum { GOLDEN_STEP = TEST_SANITIZED ? 3 : 1 };

enum { GOLDEN_WHOLE = 40, GOLDEN_HEAD = 8, GOLDEN_TAIL = 4 };

/* One row of permute.txt. */
struct golden {
    char algorithm[16];
    uint64_t n, seed, epoch, fingerprint;
    /* The number of values: n if n <= GOLDEN_WHOLE, otherwise GOLDEN_HEAD + GOLDEN_TAIL. */
    unsigned count;
    uint64_t values[GOLDEN_WHOLE];
};

/* False at the end of the table. Exits with a message on a malformed row. */
bool golden_next(FILE *table, struct golden *row);

enum { GOLDEN_POSITIONS = 8 };

/* One row of primefold.txt. */
struct golden_positions {
    uint64_t n, seed, epoch;
    unsigned count;
    uint64_t position[GOLDEN_POSITIONS], value[GOLDEN_POSITIONS];
};

/* Returns false at the end of the table. Exits with a message on a malformed row. */
bool golden_next_positions(FILE *table, struct golden_positions *row);

enum { GOLDEN_SHOWN = 8 };

/* One row of streams.txt. */
struct golden_stream {
    char distribution[16], dtype[16];
    uint64_t seed, stream, offset, count, fingerprint;
    double mean, std; /* 0 with a bound */
    uint64_t bound;   /* of integers; else 0 */
    unsigned shown;   /* the number of values; they are the first ones */
    uint64_t bits[GOLDEN_SHOWN];
};

/* Returns false at the end of the table. Exits with a message on a malformed row. */
bool golden_next_stream(FILE *table, struct golden_stream *row);

/* The position of value `index` of the row in the permutation. */
uint64_t golden_position(const struct golden *row, unsigned index);

/* The fingerprint (shuf/fingerprint.h), by a plain sum. */
uint64_t golden_fingerprint(const uint64_t *values, uint64_t count);

/* Takes the next number of a row, in any base of C. Ends the process if there is none. */
uint64_t golden_number(char **row);

#endif
