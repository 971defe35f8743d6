/* SPDX-License-Identifier: MIT
 *
 * See refusals.h. A service manager starts the daemon again as long as a connection is in the
 * backlog of its socket, even if the client has gone. So a daemon that cannot start empties the
 * backlog, for at most a second.
 */
#include "refusals.h"

#include "config/thread.h"
#include "listener.h"
#include "message.h"
#include "peer_socket.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

/* ---- One connection, and a backlog ---- */

enum { READ = 4096, REFUSE_NS = 1000000000 };

/* A new socket has room for one reply, so send() never waits. If bytes of the client are unread at
 * close(), the client gets a reset instead of the reply. So this function reads once, which is
 * enough for the Hello of every normal client. A client that sends more gets the reset. */
static void refuse_connection(int fd, const struct shuf__error *error)
{
    uint8_t bytes[READ];
    char text[SHUF__ERROR_TEXT];
    Shuf__Reply reply = SHUF__REPLY__INIT;
    memcpy(text, error->text, sizeof text);
    reply.status = (uint32_t)error->status;
    reply.message = text;
    size_t size = shuf__message_pack(&reply.base, bytes, sizeof bytes);
    assert(size > 0);
    if (send(fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)size)
        (void)!shuf__peer_socket_receive(fd, bytes, sizeof bytes);
    shuf__peer_socket_close(fd);
}

/* The status is never INVALID, because a client would look for the mistake in its own request. */
void shuf__refuse_backlog(int listening, const struct shuf__error *cause)
{
    struct shuf__error error;
    int fd;
    shuf__fail(&error, SHUF_DEVICE, "the daemon cannot start: %s", cause->text);
    const uint64_t start_ns = uv_hrtime();
    while (uv_hrtime() - start_ns < REFUSE_NS && (fd = shuf__peer_socket_accept(listening)) >= 0)
        refuse_connection(fd, &error);
    shuf__closing_finish();
}

void shuf__refuse_passed(const struct shuf__error *cause)
{
    struct shuf__error ignored;
    int fd;
    if (shuf__activation_take(&fd, &ignored) || fd < 0)
        return;
    shuf__peer_socket_forbid_descriptors(fd, true);
    shuf__refuse_backlog(fd, cause);
}

/* ---- On the thread ---- */

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
    refuse_connection(fd, error);
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

/* ---- On the loop's thread ---- */

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
