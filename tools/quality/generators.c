/* SPDX-License-Identifier: MIT
 *
 * The table of the generators.
 */
#include "generator.h"

#include <stddef.h>
#include <string.h>

const struct shuf__generator *const shuf__generators[] = {
    &shuf__generator_primefold, &shuf__generator_philox24,     &shuf__generator_broken_primefold,
    &shuf__generator_lcg,       &shuf__generator_fisher_yates, NULL,
};

const struct shuf__generator *shuf__generator_find(const char *name)
{
    const struct shuf__generator *const *row = shuf__generators;
    while (*row && strcmp((*row)->name, name) != 0)
        row++;
    return *row;
}
