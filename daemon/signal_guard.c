/* SPDX-License-Identifier: MIT
 *
 * See signal_guard.h. The watchers need a loop of their own: the daemon's loop ends before the
 * process.
 */
#include "signal_guard.h"

#include <signal.h>
#include <stddef.h>
#include <uv.h>

static const int guarded[] = {SIGTERM, SIGINT, SIGHUP};

enum { GUARDED = sizeof guarded / sizeof *guarded };

static uv_loop_t loop; /* never runs */
static uv_signal_t watchers[GUARDED];

static void ignore(uv_signal_t *watcher, int number)
{
    (void)watcher;
    (void)number;
}

int shuf__signal_guard_start(void)
{
    int result = uv_loop_init(&loop);
    for (size_t i = 0; i < GUARDED && result == 0; i++) {
        uv_signal_init(&loop, &watchers[i]); /* cannot fail again: its pipe exists with the loop */
        result = uv_signal_start(&watchers[i], ignore, guarded[i]);
    }
    return result;
}
