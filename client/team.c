/* SPDX-License-Identifier: MIT
 *
 * See team.h. Two faults of OpenMP's run time must not reach a program: it ends the process if it
 * cannot start a thread, and it waits for ever in a child of fork() if the parent had a team. So a
 * larger team is tried first, and such a child has no team.
 */
#include "team.h"

#include "host/host.h"
#include "host/threads.h"

#include <stdatomic.h>
#include <unistd.h>

static _Atomic pid_t user; /* the first process with a team */
static _Thread_local int largest = 1;

static bool parent_had_team(void)
{
    pid_t none = 0;
    const pid_t self = getpid();
    return !atomic_compare_exchange_strong(&user, &none, self) && none != self;
}

shuf_status shuf__team(unsigned threads, int *team, struct shuf__error *error)
{
    *team = shuf__host_threads(threads);
    if (*team > 1 && parent_had_team())
        *team = 1;
    if (*team <= largest)
        return SHUF_OK;
    if (shuf__threads_start(*team, error))
        return error->status;
    largest = *team;
    return SHUF_OK;
}
