/* SPDX-License-Identifier: MIT
 *
 * How people write numbers, on the command line and in the configuration.
 */
#ifndef SHUF__NUMBER_H
#define SHUF__NUMBER_H

#include "error.h"

#include <stdint.h>

/* Reads a decimal number, as in -3, 0.25 or 1e-3, to the nearest double; "inf" and "nan" too, for
 * the caller to refuse by its range. Fails as the next, also where that double would be infinite,
 * or 0 of a number that is not. */
shuf_status shuf__decimal_parse(const char *field, const char *text, double *value,
                                struct shuf__error *error);

/* Reads a whole number below 2^64: decimal (`1_000_000`), hexadecimal (`0x7`),
 * with a decimal exponent (`1e9`; `2.5e3` is whole, so it is one) or a binary
 * suffix Ki, Mi, Gi, Ti, Pi, Ei (`64Ki`). Fails with SHUF_INVALID and a line
 * that names `field`, the text, and why it is no such number. */
shuf_status shuf__number_parse(const char *field, const char *text, uint64_t *value,
                               struct shuf__error *error);

#endif
