/* SPDX-License-Identifier: MIT
 *
 * The turns of all sessions, and the sleep of the loop after them (session.h).
 */
#include "session.h"

#include <sched.h>

/* ---- Turns ---- */

/* The reply after a longer request has a turn of its own. A request of 1000 values takes 4 us, and
 * 10 to 13 us if other programs have used the caches. It and its reply must fit one turn. */
enum { LONG_REQUEST_NS = 50000 };

static void on_more(uv_idle_t *idle)
{
    (void)idle; /* shuf__sessions_serve() is called before the loop sleeps */
}

/* If several sessions of a user have requests, all are handled first, and then their replies are
 * sent together. A client that waits for several of these replies wakes up only once. The reply to
 * a user with only one ready session is sent at once, unless its request took LONG_REQUEST_NS. */
static void take_turn(struct shuf__session *session)
{
    const uint64_t end = uv_hrtime() + LONG_REQUEST_NS;
    shuf__session_serve(session);
    if (session->state == SHUF__SESSION_SENDING && shuf__ready_is_only(&session->ready) &&
        uv_hrtime() < end) {
        shuf__ready_remove(&session->ready);
        shuf__session_serve(session);
    }
}

void shuf__session_take_turn(struct shuf__ready *ready)
{
    struct shuf__session *session =
        (struct shuf__session *)((char *)ready - offsetof(struct shuf__session, ready));
    session->refs++;
    take_turn(session);
    shuf__session_unref(session);
}

void shuf__sessions_serve(struct shuf__sessions *sessions)
{
    struct shuf__ready *next;
    uint64_t now = uv_hrtime(), before;
    const uint64_t end = now + shuf__ready_turn_ns(&sessions->ready);
    while (now < end && (next = shuf__ready_next(&sessions->ready)) != NULL) {
        struct shuf__ready_user *user = next->user;
        user->refs++;
        next->serve(next);
        before = now;
        now = uv_hrtime();
        user->used_ns += now - before;
        shuf__ready_user_unref(user);
    }
    if (uv_is_closing((uv_handle_t *)&sessions->more)) /* a turn has ended the daemon */
        return;
    if (shuf__ready_is_empty(&sessions->ready))
        uv_idle_stop(&sessions->more);
    else
        uv_idle_start(&sessions->more, on_more);
}

/* ---- Staying awake ---- */

static int processors(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 2;
}

static void init_spin(struct shuf__spin *spin, uv_loop_t *loop)
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

/* ---- The start and the end ---- */

void shuf__sessions_init(struct shuf__sessions *sessions, uv_loop_t *loop)
{
    sessions->loop = loop;
    LIST_INIT(&sessions->list);
    shuf__ready_init(&sessions->ready, loop);
    uv_idle_init(loop, &sessions->more);
    init_spin(&sessions->spin, loop);
}

void shuf__sessions_close(struct shuf__sessions *sessions)
{
    if (uv_is_closing((uv_handle_t *)&sessions->more))
        return;
    uv_close((uv_handle_t *)&sessions->more, NULL);
    uv_close((uv_handle_t *)&sessions->spin.idle, NULL);
}
