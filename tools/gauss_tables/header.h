/* SPDX-License-Identifier: MIT
 *
 * kernels/inline/shuf/gauss_table.h: writing it, and what the one that was compiled in says.
 */
#ifndef SHUF__GAUSS_HEADER_H
#define SHUF__GAUSS_HEADER_H

#include "proof.h"

#include <stdbool.h>

/* `made_by` and `made_with` are for people. False where the stream failed. */
bool shuf__header_write(const shuf__tables *tables, const struct shuf__proof *proof,
                        const char *made_by, const char *made_with, FILE *to);

/* False, told on stderr, where the table's halves are not each other's opposite. */
bool shuf__header_read(shuf__tables *tables);

#endif
