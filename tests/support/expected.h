/* SPDX-License-Identifier: MIT
 *
 * What a request must give, worked out the plain way: the whole permutation by
 * the inline ciphers, then the view as its definition reads.
 */
#ifndef SHUF__TEST_EXPECTED_H
#define SHUF__TEST_EXPECTED_H

#include "shuf.h"

/* All values, row-major; freed by the caller. *count: how many, may be NULL. Ends the process for
 * an algorithm that it does not know. */
uint64_t *expected_values(const shuf_permutation *request, uint64_t *count);

/* Gives a request, whose n is set, a view at random (random.h). */
void expected_draw_view(shuf_permutation *request);

/* Value `index` of a result, whatever its type. */
uint64_t expected_read(const void *result, unsigned width, uint64_t index);

/* Whether `result` holds just these values; a first difference goes to stderr. */
bool expected_equal(const uint64_t *values, const void *result, unsigned width, uint64_t count);

#endif
