/* SPDX-License-Identifier: MIT
 *
 * See interrupt.h. The function belongs to the process, because a signal does.
 */
#include "interrupt.h"

#include "shuf_handle.h"

#include <errno.h>
#include <stddef.h>

static _Atomic(shuf_interrupt) ask; /* NULL: no signal ends a call */

void shuf_set_interrupt(shuf_interrupt interrupt)
{
    ask = interrupt;
}

bool shuf__is_interrupted(void)
{
    const int kept = errno;
    const shuf_interrupt function = ask;
    const bool ends = function != NULL && function();
    errno = kept;
    return ends;
}
