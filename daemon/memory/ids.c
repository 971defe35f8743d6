/* SPDX-License-Identifier: MIT
 *
 * See ids.h.
 */
#include "ids.h"

#include <unistd.h>

#define IDS (UINT64_C(1) << 53) /* many readers of JSON store integers exactly only below this */

void shuf__ids_init(struct shuf__ids *ids)
{
    shuf_key key = {{0}};
    if (getentropy(&key, sizeof key) != 0)
        key.word[0] = (uint64_t)(uintptr_t)ids; /* the ids still differ, but may be guessed */
    ids->last = 0;
    ids->permutation = shuf_philox24_make_keyed(IDS, key, 0);
}

uint64_t shuf__ids_of(const struct shuf__ids *ids, uint64_t number)
{
    return shuf_philox24_forward(&ids->permutation, number);
}

uint64_t shuf__ids_next(struct shuf__ids *ids)
{
    const uint64_t id = shuf__ids_of(ids, ++ids->last);
    return id != 0 ? id : shuf__ids_next(ids);
}

uint64_t shuf__ids_number(const struct shuf__ids *ids, uint64_t id)
{
    return id == 0 || id >= IDS ? id : shuf_philox24_inverse(&ids->permutation, id);
}
