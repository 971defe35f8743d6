/* SPDX-License-Identifier: MIT
 *
 * Lists of sizes, such as 2:64,100,127:129, and the number of rows for each.
 */
#ifndef SHUF__SIZES_H
#define SHUF__SIZES_H

#include "error.h"

#include <stdint.h>

/* The default sizes of `suite`. */
#define SHUF__SIZES_DEFAULT "2:64,100,127:129,255:257,1000,1023:1025,4096,65535:65537"

/* Reads a list of at most `room` numbers, each from `least` to `most`. A:B means all numbers from A
 * to B. */
shuf_status shuf__sizes_parse(const char *field, const char *text, uint32_t least, uint32_t most,
                              uint32_t *sizes, unsigned room, unsigned *count,
                              struct shuf__error *error);

/* The default number of rows for n: enough to show faults, in reasonable time. */
uint64_t shuf__sizes_samples(uint32_t n);

#endif
