/* SPDX-License-Identifier: MIT
 *
 * Reads and writes numbers, sizes, durations and amounts of the command line and of the
 * configuration.
 */
#ifndef SHUF__NUMBER_H
#define SHUF__NUMBER_H

#include "error.h"

#include <stdbool.h>
#include <stdint.h>

/* Reads a decimal number such as -3, 0.25 or 1e-3, and gives the nearest double. It also reads
 * "inf" and "nan", which the caller's check of the range refuses. Fails with SHUF_INVALID for other
 * text, and for a number that is too large or too small for a double. */
shuf_status shuf__decimal_parse(const char *field, const char *text, double *value,
                                struct shuf__error *error);

/* Reads a whole number from `least` to `most`: decimal (`1_000_000`), hexadecimal (`0x7`), with a
 * decimal exponent (`1e9`), or with a prefix. The prefixes k, M, G, T, P, E are powers of 1000, and
 * Ki, Mi, Gi, Ti, Pi, Ei are powers of 1024. The letter B may follow the prefix (`8GB`, `8GiB`). A
 * fraction is allowed if the result is whole (`1.5k`). Fails with SHUF_INVALID; the error names
 * `field`, the text and the expected values. */
shuf_status shuf__number_parse_in(const char *field, const char *text, uint64_t least,
                                  uint64_t most, uint64_t *value, struct shuf__error *error);

/* Reads any number below 2^64 in the same way. */
shuf_status shuf__number_parse(const char *field, const char *text, uint64_t *value,
                               struct shuf__error *error);

/* A ratio of 0 or more, in lowest terms. */
struct shuf__ratio {
    uint64_t numerator, denominator;
};

/* Reads a ratio exactly: a number in one of the notations above, also one that is not whole (`0.7`,
 * `1e-3`), or two of them with a slash between them (`2/3`). Fails with SHUF_INVALID, also if the
 * terms do not fit 64 bits. */
shuf_status shuf__ratio_parse(const char *field, const char *text, struct shuf__ratio *ratio,
                              struct shuf__error *error);

enum { SHUF__NUMBER_TEXT = 32 };

/* Reads a duration: a number and one of ns, us, ms, s, min and h (`10min`, `0.5s`). A number
 * without a unit is in seconds. Gives nanoseconds, from `least` to `most`. Fails with SHUF_INVALID.
 */
shuf_status shuf__duration_parse(const char *field, const char *text, uint64_t least, uint64_t most,
                                 uint64_t *nanoseconds, struct shuf__error *error);

/* These two functions write a whole number with the largest unit that divides the value. The
 * parsers can read the text: "8Gi", "10min". */
const char *shuf__size_text(char text[SHUF__NUMBER_TEXT], uint64_t bytes);
const char *shuf__duration_text(char text[SHUF__NUMBER_TEXT], uint64_t nanoseconds);

/* A limit in a message: "2^62", "2^64 - 1", "1000000". */
const char *shuf__bound_text(char text[SHUF__NUMBER_TEXT], uint64_t bound);

/* ---- Amounts ---- */

/* An amount as the configuration gives it: a number, or a part of the whole. It is of bytes of
 * memory, or of connections. */

struct shuf__amount {
    uint64_t number; /* bytes, or percent */
    bool percent;
    char written[SHUF__NUMBER_TEXT]; /* as shuf__amount_parse() has read it; "": longer than that */
};

/* Reads "25%" (at most 100%), or bytes as shuf__number_parse() does ("8Gi"; at most 2^63 - 1).
 * Fails with SHUF_INVALID. */
shuf_status shuf__amount_parse(const char *field, const char *text, struct shuf__amount *amount,
                               struct shuf__error *error);

/* Writes the amount in the syntax of shuf__amount_parse(), with the largest exact suffix. */
const char *shuf__amount_text(char text[SHUF__NUMBER_TEXT], struct shuf__amount amount);

/* The amount in bytes, when all the memory is `total` bytes. */
uint64_t shuf__amount_bytes(struct shuf__amount amount, uint64_t total);

#endif
