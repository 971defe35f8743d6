/* SPDX-License-Identifier: MIT
 *
 * Why memory is refused: the request can never fit, or other allocations, those of the same user,
 * or other programs are in its way. On the loop's thread.
 */
#ifndef SHUFD_REFUSAL_H
#define SHUFD_REFUSAL_H

#include "room.h"

/* Fails with SHUF_NO_MEMORY if the size of the need could not fit even with nothing but `beside`
 * bytes in use. */
shuf_status shuf__refusal_check_fit(const struct shuf__allocations *allocations,
                                    const struct shuf__need *need, uint64_t beside,
                                    struct shuf__error *error);

/* Says why there is no room, even if `freed` were freed: SHUF_NO_MEMORY if the size is above the
 * largest limit, SHUF_BUSY if other allocations, those of the user itself, or other programs use
 * the memory. Both name the bytes requested and allowed. */
shuf_status shuf__refuse_allocation(struct shuf__allocations *allocations,
                                    const struct shuf__need *need, const struct shuf__freed *freed,
                                    struct shuf__error *error);

#endif
