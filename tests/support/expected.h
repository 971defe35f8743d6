/* SPDX-License-Identifier: MIT
 *
 * The expected values of a request: computes the whole permutation by the inline algorithms, and
 * then selects the values of the view by its definition.
 */
#ifndef SHUF__TEST_EXPECTED_H
#define SHUF__TEST_EXPECTED_H

#include "shuf.h"

/* All values, row-major; the caller frees them. *count is their number; `count` may be NULL. Ends
 * the process for an unknown algorithm. */
uint64_t *expected_values(const shuf_request *request, uint64_t *count);

/* Gives the request a random view (random.h). n must be set. */
void expected_random_view(shuf_request *request);

/* Value `index` of a result with values of `width` bytes. */
uint64_t expected_read(const void *result, unsigned width, uint64_t index);

/* Whether `result` has exactly these values. The first difference is printed on stderr. */
bool expected_equal(const uint64_t *values, const void *result, unsigned width, uint64_t count);

#endif
