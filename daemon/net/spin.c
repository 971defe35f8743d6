/* SPDX-License-Identifier: MIT
 *
 * See spin.h.
 */
#include "spin.h"

#include <sched.h>

static int processors(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 2;
}

void shuf__spin_init(struct shuf__spin *spin, uv_loop_t *loop)
{
    uv_idle_init(loop, &spin->idle);
    uv_unref((uv_handle_t *)&spin->idle);
    spin->idle.data = spin;
}

void shuf__spin_set(struct shuf__spin *spin, uint64_t nanoseconds)
{
    spin->ns = processors() > 1 ? nanoseconds : 0;
}

/* Yields, so that other processes that need the processor run first. */
static void on_idle(uv_idle_t *idle)
{
    const struct shuf__spin *spin = idle->data;
    if (uv_hrtime() < spin->until_ns)
        sched_yield();
    else
        uv_idle_stop(idle);
}

void shuf__spin_replied(struct shuf__spin *spin, uint64_t now_ns)
{
    if (spin->ns == 0)
        return;
    spin->until_ns = now_ns + spin->ns;
    if (!uv_is_active((uv_handle_t *)&spin->idle))
        uv_idle_start(&spin->idle, on_idle);
}
