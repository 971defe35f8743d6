/* SPDX-License-Identifier: MIT
 *
 * See number_list.h.
 */
#include "number_list.h"

#include <stdlib.h>

shuf_status shuf__numbers_add(struct shuf__numbers *numbers, const char *field, uint64_t number,
                              struct shuf__error *error)
{
    if (numbers->count == numbers->room) {
        const size_t room = numbers->room ? 2 * numbers->room : 64;
        uint64_t *at = reallocarray(numbers->at, room, sizeof *at);
        if (!at)
            return shuf__fail(error, SHUF_NO_MEMORY, "%s: out of memory for %zu numbers", field,
                              numbers->count + 1);
        numbers->at = at;
        numbers->room = room;
    }
    numbers->at[numbers->count++] = number;
    return SHUF_OK;
}
