/* SPDX-License-Identifier: MIT
 *
 * The threads of one computation learn that it is cancelled.
 */
#ifndef SHUF__HOST_CANCELLED_H
#define SHUF__HOST_CANCELLED_H

#include "backend.h"

#include <stdatomic.h>
#include <stdbool.h>

/* Asks the caller of the computation, and notes the answer in *cancelled. All threads of the
 * computation share *cancelled, so after one thread gets the answer "yes", all threads get it. */
static inline bool shuf__is_cancelled(const struct shuf__computation *computation,
                                      atomic_bool *cancelled)
{
    if (computation->cancelled && computation->cancelled(computation->cancel_context))
        atomic_store(cancelled, true);
    return atomic_load(cancelled);
}

#endif
