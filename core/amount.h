/* SPDX-License-Identifier: MIT
 *
 * An amount as the configuration gives it: a number, or a part of the whole. It is of bytes of
 * memory, or of connections.
 */
#ifndef SHUF__AMOUNT_H
#define SHUF__AMOUNT_H

#include "error.h"
#include "number.h"

#include <stdbool.h>
#include <stdint.h>

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
