/* SPDX-License-Identifier: MIT
 *
 * See refusals.h.
 */
#include "refusals.h"

#include "config/thread.h"
#include "refuse.h"

#include <assert.h>
#include <stdint.h>
#include <time.h>

/* ---- on the thread ---- */

/* Waits until another connection may be refused, and returns the time. */
static uint64_t keep_pace(uint64_t last_ns)
{
    const uint64_t due_ns = last_ns + SHUF__REFUSAL_NS, now_ns = uv_hrtime();
    if (now_ns < due_ns)
        nanosleep(&(struct timespec){.tv_nsec = (long)(due_ns - now_ns)}, NULL);
    return uv_hrtime();
}

/* Releases the mutex while it works. */
static void refuse_first(struct shuf__refusals *refusals, uint64_t *last_ns)
{
    const int fd = refusals->refusal[refusals->first].fd;
    const struct shuf__error *error = &refusals->refusal[refusals->first].error;
    const bool hurries = refusals->is_stopping;
    pthread_mutex_unlock(&refusals->mutex);
    if (!hurries)
        *last_ns = keep_pace(*last_ns);
    shuf__refuse_connection(fd, error);
    pthread_mutex_lock(&refusals->mutex);
    refusals->first = (refusals->first + 1) % SHUF__REFUSALS_MOST;
    refusals->count--;
}

/* The loop hears of room only when half of the places are free, so it does not wake up for each. */
static void report_room(struct shuf__refusals *refusals)
{
    if (!refusals->is_full || refusals->count > SHUF__REFUSALS_MOST / 2)
        return;
    refusals->is_full = false;
    uv_async_send(&refusals->room);
}

static void *refuse_all(void *context)
{
    struct shuf__refusals *refusals = context;
    uint64_t last_ns = 0;
    pthread_mutex_lock(&refusals->mutex);
    while (refusals->count > 0 || !refusals->is_stopping) {
        if (refusals->count == 0)
            pthread_cond_wait(&refusals->changed, &refusals->mutex);
        else
            refuse_first(refusals, &last_ns);
        report_room(refusals);
    }
    pthread_mutex_unlock(&refusals->mutex);
    return NULL;
}

/* ---- on the loop's thread ---- */

static void on_room(uv_async_t *room)
{
    struct shuf__refusals *refusals =
        (struct shuf__refusals *)((char *)room - offsetof(struct shuf__refusals, room));
    refusals->has_room(refusals);
}

int shuf__refusals_start(struct shuf__refusals *refusals, uv_loop_t *loop)
{
    refusals->first = refusals->count = 0;
    refusals->is_stopping = refusals->is_full = false;
    pthread_mutex_init(&refusals->mutex, NULL);
    pthread_cond_init(&refusals->changed, NULL);
    int result = uv_async_init(loop, &refusals->room, on_room);
    if (result != 0)
        return result;
    result = shuf__thread_start(&refusals->thread, refuse_all, refusals);
    refusals->is_started = result == 0;
    if (!refusals->is_started)
        uv_close((uv_handle_t *)&refusals->room, NULL);
    return uv_translate_sys_error(result);
}

bool shuf__refusals_are_full(struct shuf__refusals *refusals)
{
    pthread_mutex_lock(&refusals->mutex);
    const bool is_full = refusals->is_full |= refusals->count == SHUF__REFUSALS_MOST;
    pthread_mutex_unlock(&refusals->mutex);
    return is_full;
}

void shuf__refusals_add(struct shuf__refusals *refusals, int fd, const struct shuf__error *error)
{
    pthread_mutex_lock(&refusals->mutex);
    assert(refusals->count < SHUF__REFUSALS_MOST);
    const size_t last = (refusals->first + refusals->count++) % SHUF__REFUSALS_MOST;
    refusals->refusal[last].fd = fd;
    refusals->refusal[last].error = *error;
    if (refusals->count == 1)
        pthread_cond_signal(&refusals->changed);
    pthread_mutex_unlock(&refusals->mutex);
}

void shuf__refusals_stop(struct shuf__refusals *refusals)
{
    if (!refusals->is_started)
        return;
    refusals->is_started = false;
    pthread_mutex_lock(&refusals->mutex);
    refusals->is_stopping = true;
    pthread_cond_signal(&refusals->changed);
    pthread_mutex_unlock(&refusals->mutex);
    pthread_join(refusals->thread, NULL);
    pthread_cond_destroy(&refusals->changed);
    pthread_mutex_destroy(&refusals->mutex);
    uv_close((uv_handle_t *)&refusals->room, NULL);
}
