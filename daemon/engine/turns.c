/* SPDX-License-Identifier: MIT
 *
 * See turns.h.
 */
#include "turns.h"

#include <stdlib.h>

void shuf__turns_init(struct shuf__turns *turns)
{
    TAILQ_INIT(&turns->users);
    turns->virtual_ns = 0;
}

static struct shuf__turn_user *add(struct shuf__turns *turns, uint32_t uid)
{
    struct shuf__turn_user *user = calloc(1, sizeof *user);
    if (!user)
        return NULL;
    user->uid = uid;
    user->virtual_ns = turns->virtual_ns;
    shuf__job_queue_init(&user->waiting);
    TAILQ_INSERT_TAIL(&turns->users, user, link);
    return user;
}

struct shuf__turn_user *shuf__turns_user(struct shuf__turns *turns, uint32_t uid)
{
    struct shuf__turn_user *user;
    TAILQ_FOREACH (user, &turns->users, link)
        if (user->uid == uid)
            return user;
    return add(turns, uid);
}

static bool wants_turn(const struct shuf__turn_user *user, bool may_begin)
{
    return user->active || (may_begin && user->waiting.first && !user->waits);
}

struct shuf__turn_user *shuf__turns_next(struct shuf__turns *turns, bool may_begin)
{
    struct shuf__turn_user *user, *next = NULL;
    TAILQ_FOREACH (user, &turns->users, link)
        if (wants_turn(user, may_begin) && (!next || user->virtual_ns < next->virtual_ns))
            next = user;
    if (next)
        turns->virtual_ns = next->virtual_ns;
    return next;
}

bool shuf__turns_has_others(const struct shuf__turns *turns, const struct shuf__turn_user *user,
                            bool may_begin)
{
    const struct shuf__turn_user *other;
    TAILQ_FOREACH (other, &turns->users, link)
        if (other != user && wants_turn(other, may_begin))
            return true;
    return false;
}

uint64_t shuf__turns_ahead(const struct shuf__turns *turns, uint32_t uid)
{
    const struct shuf__turn_user *user;
    uint64_t ahead = 0;
    TAILQ_FOREACH (user, &turns->users, link) {
        const uint64_t jobs = user->count + (user->active != NULL);
        ahead += user->uid == uid ? jobs : jobs > 0;
    }
    return ahead;
}

void shuf__turns_end_waits(struct shuf__turns *turns)
{
    struct shuf__turn_user *user;
    TAILQ_FOREACH (user, &turns->users, link)
        user->waits = false;
}

void shuf__turns_forget_idle(struct shuf__turns *turns)
{
    struct shuf__turn_user *user = TAILQ_FIRST(&turns->users), *next;
    for (; user; user = next) {
        next = TAILQ_NEXT(user, link);
        if (user->active || user->waiting.first)
            continue;
        TAILQ_REMOVE(&turns->users, user, link);
        free(user);
    }
}
