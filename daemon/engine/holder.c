/* SPDX-License-Identifier: MIT
 *
 * See holder.h.
 */
#include "holder.h"

#define MS UINT64_C(1000000)

void shuf__holder_init(struct shuf__holder *holder, const struct shuf__turns *turns,
                       struct shuf__lanes *lanes, bool on_host)
{
    *holder = (struct shuf__holder){
        .turns = turns,
        .lanes = lanes,
        .turn_ns = (on_host ? SHUF__TURN_HOST_MS : SHUF__TURN_DEVICE_MS) * MS,
        .hand_over_ns = on_host ? 0 : SHUF__HAND_OVER_DEVICE_MS * MS,
    };
}

void shuf__holder_begin_turn(struct shuf__holder *holder)
{
    holder->begin_ns = uv_hrtime();
}

void shuf__holder_end_turn(struct shuf__holder *holder, struct shuf__turn_user *user)
{
    const uint64_t now = uv_hrtime();
    user->virtual_ns += now - holder->begin_ns;
    holder->begin_ns = now;
}

uint64_t shuf__holder_time_left(const struct shuf__holder *holder)
{
    const uint64_t used = uv_hrtime() - holder->begin_ns;
    if (!shuf__turns_has_others(holder->turns, holder->running->user, true))
        return UINT64_MAX;
    return used < holder->turn_ns ? holder->turn_ns - used : 0;
}

void shuf__holder_pause(struct shuf__holder *holder)
{
    atomic_store(&holder->running->paused, true);
    holder->leaving = holder->running;
    holder->leave_until_ns = uv_hrtime() + holder->hand_over_ns;
    holder->running = NULL;
}

/* The time until now is part of the job's turn. */
static void end_leaving(struct shuf__holder *holder)
{
    shuf__holder_end_turn(holder, holder->leaving->user);
    holder->leaving = NULL;
}

uint64_t shuf__holder_try_hand_over(struct shuf__holder *holder)
{
    const uint64_t now = uv_hrtime();
    if (!holder->leaving)
        return 0;
    if (now < holder->leave_until_ns && !shuf__lanes_has_paused(holder->lanes, holder->leaving))
        return holder->leave_until_ns - now;
    end_leaving(holder);
    return 0;
}

void shuf__holder_forget(struct shuf__holder *holder, const struct shuf__engine_job *job)
{
    if (holder->leaving == job)
        end_leaving(holder);
    if (holder->running != job)
        return;
    shuf__holder_end_turn(holder, job->user);
    holder->running = NULL;
}
