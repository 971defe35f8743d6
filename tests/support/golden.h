/* SPDX-License-Identifier: MIT
 *
 * Reads the plain-text tables of tests/vectors, for every test that holds some
 * part of shufd to them.
 */
#ifndef SHUF__GOLDEN_H
#define SHUF__GOLDEN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Opens vectors/`name`; exits with a message when it is not there. */
FILE *golden_open(const char *name);

/* The next row that is no comment, without its newline; NULL at the end. Valid until the next
 * call. */
char *golden_line(FILE *table);

enum { GOLDEN_WHOLE = 40, GOLDEN_HEAD = 8, GOLDEN_TAIL = 4 };

/* One row of permute.txt. */
struct golden {
    char algorithm[16];
    uint64_t n, seed, epoch, fingerprint;
    unsigned count; /* of values: n where n <= GOLDEN_WHOLE, else GOLDEN_HEAD + GOLDEN_TAIL */
    uint64_t values[GOLDEN_WHOLE];
};

/* False at the end of the table; exits with a message on a row that is not well formed. */
bool golden_next(FILE *table, struct golden *row);

enum { GOLDEN_PLACES = 8 };

/* One row of primefold.txt. */
struct golden_places {
    uint64_t n, seed, epoch;
    unsigned count;
    uint64_t position[GOLDEN_PLACES], value[GOLDEN_PLACES];
};

/* As golden_next(). */
bool golden_next_places(FILE *table, struct golden_places *row);

enum { GOLDEN_SHOWN = 8 };

/* One row of streams.txt. */
struct golden_stream {
    char distribution[16], dtype[16];
    uint64_t seed, stream, offset, count, fingerprint;
    double mean, std;
    unsigned shown; /* values: the first ones */
    uint64_t bits[GOLDEN_SHOWN];
};

/* As golden_next(). */
bool golden_next_stream(FILE *table, struct golden_stream *row);

/* Where in the permutation value `index` of the row stands. */
uint64_t golden_position(const struct golden *row, unsigned index);

/* shuf/fingerprint.h, by a plain sum. */
uint64_t golden_fingerprint(const uint64_t *values, uint64_t count);

#endif
