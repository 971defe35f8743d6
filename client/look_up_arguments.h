/* SPDX-License-Identifier: MIT
 *
 * The check of a look-up's arguments, in a daemon or in this process.
 */
#ifndef SHUF__LOOK_UP_ARGUMENTS_H
#define SHUF__LOOK_UP_ARGUMENTS_H

#include "request.h"
#include "shuf_request.h"

/* Makes a LOOK_UP. Fails with SHUF_INVALID. */
shuf_status shuf__look_up_request(const shuf_permutation *permutation, shuf_direction direction,
                                  struct shuf__request *request, struct shuf__error *error);

/* The same, and checks the arrays and each at[i]. */
shuf_status shuf__look_up_arguments(const shuf_permutation *permutation, shuf_direction direction,
                                    const uint64_t *at, size_t count, const uint64_t *out,
                                    struct shuf__request *request, struct shuf__error *error);

/* Checks that `at` and `out`, of `count` numbers of `width` bytes each, are one array or apart. */
shuf_status shuf__check_places(const void *at, const void *out, size_t count, unsigned width,
                               struct shuf__error *error);

#endif
