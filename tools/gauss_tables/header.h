/* SPDX-License-Identifier: MIT
 *
 * Writes kernels/inline/shuf/gauss_table.h, and reads the compiled table.
 */
#ifndef SHUF__GAUSS_HEADER_H
#define SHUF__GAUSS_HEADER_H

#include "proof.h"

#include <stdbool.h>

/* `made_by` and `made_with` are texts for the header's comment. False if the stream failed. */
bool shuf__header_write(const shuf__tables *tables, const struct shuf__proof *proof,
                        const char *made_by, const char *made_with, FILE *to);

/* False, with a line on stderr, if the table's halves are not opposite to each other. */
bool shuf__header_read(shuf__tables *tables);

#endif
