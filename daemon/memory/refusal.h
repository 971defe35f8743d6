/* SPDX-License-Identifier: MIT
 *
 * The reason why a request gets no memory. It can never fit, or the memory is in use: by the same
 * user, by other users, or by other programs. All calls are on the loop's thread.
 */
#ifndef SHUFD_REFUSAL_H
#define SHUFD_REFUSAL_H

#include "room.h"

/* Fails with SHUF_NO_MEMORY if the needed block together with `beside` bytes exceeds the limit.
 * Then it does not fit even if nothing else is in use. */
shuf_status shuf__refusal_check_fit(const struct shuf__allocations *allocations,
                                    const struct shuf__need *need, uint64_t beside,
                                    struct shuf__error *error);

/* Says why there is no room even if `freed` were freed. Fails with SHUF_NO_MEMORY if the size is
 * above the largest limit. Fails with SHUF_BUSY if the memory is in use: by other users, by the
 * user itself, or by other programs. The message tells what to do. */
shuf_status shuf__refuse_allocation(struct shuf__allocations *allocations,
                                    const struct shuf__need *need, const struct shuf__freed *freed,
                                    struct shuf__error *error);

#endif
