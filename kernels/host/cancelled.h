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

/* Fails with SHUF_CANCELLED, for a computation in the process of the caller. */
static inline shuf_status shuf__fail_cancelled(struct shuf__error *error)
{
    return shuf__fail(error, SHUF_CANCELLED, "the function of shuf_set_interrupt() ended the call");
}

#endif
