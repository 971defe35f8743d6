/* SPDX-License-Identifier: MIT
 *
 * The reason why a request gets no memory. It can never fit, or the memory is in use: by the same
 * user, by other users, or by other programs. All calls are on the loop's thread.
 */
#ifndef SHUFD_REFUSAL_H
#define SHUFD_REFUSAL_H

#include "allocations.h"

/* Fails with SHUF_NO_MEMORY if `bytes` and `beside` bytes together exceed the limit. Then they do
 * not fit even if nothing else is in use. */
shuf_status shuf__refusal_check_fit(const struct shuf__allocations *allocations,
                                    enum shuf__memory kind, uint64_t bytes, uint64_t beside,
                                    struct shuf__error *error);

/* Fails with the reason why that size does not fit. SHUF_NO_MEMORY: it is above the configured
 * limit. SHUF_BUSY: other allocations, allocations of the user itself, or other programs use the
 * memory. Both messages name the requested and the allowed bytes. */
shuf_status shuf__refuse_allocation(const struct shuf__allocations *allocations, uint32_t uid,
                                    enum shuf__memory kind, uint64_t size,
                                    struct shuf__error *error);

#endif
