/* SPDX-License-Identifier: MIT
 *
 * A list of whole numbers that grows. Begin it with zeros, and free `at`.
 */
#ifndef SHUF__NUMBER_LIST_H
#define SHUF__NUMBER_LIST_H

#include "error.h"

#include <stddef.h>
#include <stdint.h>

struct shuf__numbers {
    uint64_t *at;
    size_t count, room;
};

/* `field` names the source of the number in errors. Fails with SHUF_NO_MEMORY. */
shuf_status shuf__numbers_add(struct shuf__numbers *numbers, const char *field, uint64_t number,
                              struct shuf__error *error);

#endif
