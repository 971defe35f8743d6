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

bool shuf__has_interrupt(void)
{
    return ask != NULL;
}

bool shuf__is_interrupted(int cause)
{
    const shuf_interrupt function = ask;
    if (!function)
        return false;
    const int kept = errno;
    errno = cause;
    const bool ends = function();
    errno = kept;
    return ends;
}

shuf_status shuf__fail_interrupted(const char *socket, struct shuf__error *error)
{
    return shuf__fail(error, SHUF_CANCELLED,
                      "socket %s: the function of shuf_set_interrupt() ended the call", socket);
}
