/* SPDX-License-Identifier: MIT
 *
 * A list of weights, as ratios and as whole numbers. Begin it with zeros.
 */
#ifndef SHUF__RATIOS_H
#define SHUF__RATIOS_H

#include "number_list.h"

#include <stdbool.h>

struct shuf__ratios {
    struct shuf__numbers numerators, denominators;
};

/* Reads one ratio (shuf__ratio_parse()). */
shuf_status shuf__ratios_add(struct shuf__ratios *ratios, const char *field, const char *text,
                             struct shuf__error *error);

/* Replaces the numerators by whole numbers in the same ratios, as small as possible. False if their
 * sum is 2^61 or more. */
bool shuf__ratios_make_whole(struct shuf__ratios *ratios);

void shuf__ratios_free(struct shuf__ratios *ratios);

#endif
