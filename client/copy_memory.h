/* SPDX-License-Identifier: MIT
 *
 * Copies between mapped memory and the caller's memory. A large copy takes long, so it asks the
 * interrupt function.
 */
#ifndef SHUF__COPY_MEMORY_H
#define SHUF__COPY_MEMORY_H

#include "handle.h"

/* Fails with SHUF_CANCELLED if a signal ends the call; the connection stays. */
shuf_status shuf__copy_memory(shuf *handle, void *out, const void *in, size_t bytes);

#endif
