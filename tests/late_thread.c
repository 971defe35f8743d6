/* SPDX-License-Identifier: MIT
 *
 * A library for LD_PRELOAD: after it sets a timer, a thread sleeps until the timer's first signal,
 * as on a machine where other threads take the processor.
 */
#include <dlfcn.h>
#include <signal.h>
#include <time.h>

typedef int timer_settime_function(timer_t timer, int flags, const struct itimerspec *new,
                                   struct itimerspec *old);

__attribute__((visibility("default"))) int
timer_settime(timer_t timer, int flags, const struct itimerspec *new, struct itimerspec *old)
{
    const int failed =
        ((timer_settime_function *)dlsym(RTLD_NEXT, "timer_settime"))(timer, flags, new, old);
    if (failed == 0)
        nanosleep(&new->it_value, NULL);
    return failed;
}
