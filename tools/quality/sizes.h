/* SPDX-License-Identifier: MIT
 *
 * Lists of sizes, as in 2:64,100,127:129, and how many rows each is worth.
 */
#ifndef SHUF__SIZES_H
#define SHUF__SIZES_H

#include "error.h"

#include <stdint.h>

/* What the default of `suite` is. */
#define SHUF__SIZES_DEFAULT "2:64,100,127:129,255:257,1000,1023:1025,4096,65535:65537"

/* Reads at most `room` numbers of `least` to `most`; A:B is all from A to B. */
shuf_status shuf__sizes_parse(const char *field, const char *text, uint32_t least, uint32_t most,
                              uint32_t *sizes, unsigned room, unsigned *count,
                              struct shuf__error *error);

/* Rows that show what is wrong with n in reasonable time. */
uint64_t shuf__sizes_samples(uint32_t n);

#endif
