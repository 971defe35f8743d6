/* SPDX-License-Identifier: MIT
 *
 * Why memory is refused: the request can never fit, or other allocations, those of the same user,
 * or other programs are in its way. On the loop's thread.
 */
#ifndef SHUFD_REFUSAL_H
#define SHUFD_REFUSAL_H

#include "allocations.h"

/* Fails with SHUF_NO_MEMORY if `bytes` bytes could not fit even with nothing but `beside` bytes in
 * use. */
shuf_status shuf__refusal_check_fit(const struct shuf__allocations *allocations,
                                    enum shuf__memory kind, uint64_t bytes, uint64_t beside,
                                    struct shuf__error *error);

/* Says why that size does not fit: SHUF_NO_MEMORY if it is above the largest limit, SHUF_BUSY if
 * other allocations, those of the user itself, or other programs use the memory. Both name the
 * bytes requested and allowed. */
shuf_status shuf__refuse_allocation(const struct shuf__allocations *allocations, uint32_t uid,
                                    enum shuf__memory kind, uint64_t size,
                                    struct shuf__error *error);

#endif
