/* SPDX-License-Identifier: MIT
 *
 * See holder.h.
 */
#include "holder.h"

#include "server.h"
#include "session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

static void free_holder(uv_handle_t *handle)
{
    struct shuf__holder *holder = handle->data;
    close(holder->pidfd);
    free(holder);
}

static void close_holder(struct shuf__holder *holder)
{
    if (holder->session)
        holder->session->holder = NULL;
    else
        LIST_REMOVE(holder, of_server);
    if (holder->pidfd >= 0)
        uv_close((uv_handle_t *)&holder->poll, free_holder);
    else
        free(holder);
}

static struct shuf__exposure **recent(struct shuf__holder *holder, uint64_t block)
{
    return &holder->recent[block % SHUF__RECENT];
}

static void remove_exposure(struct shuf__exposure *exposure)
{
    struct shuf__holder *holder = exposure->holder;
    struct shuf__exposure **seen = recent(holder, exposure->cell->id);
    if (*seen == exposure)
        *seen = NULL;
    LIST_REMOVE(exposure, of_holder);
    LIST_REMOVE(exposure, of_cell);
    if (!holder->session)
        exposure->cell->ghosts--;
    free(exposure);
    if (!holder->session && LIST_EMPTY(&holder->exposures))
        close_holder(holder);
}

/* The block may be free now. */
static void end_exposure(struct shuf__exposure *exposure)
{
    struct shuf__cell *cell = exposure->cell;
    remove_exposure(exposure);
    shuf__cell_was_unmapped(cell);
}

/* Of a watched holder without a session, whose memory stays until the loop has run. */
static void end_exposures(struct shuf__holder *holder)
{
    struct shuf__exposure *exposure;
    while ((exposure = LIST_FIRST(&holder->exposures)) != NULL)
        end_exposure(exposure);
}

static void on_death(uv_poll_t *poll, int status, int events)
{
    struct shuf__holder *holder = poll->data;
    (void)status;
    (void)events;
    uv_poll_stop(poll);
    if (holder->session)
        shuf__session_close(holder->session); /* which leaves the holder */
    end_exposures(holder);                    /* the last one closes it */
}

static int watch_process(struct shuf__holder *holder, struct shuf__session *session)
{
    holder->pidfd = session->peer.pid > 0 ? pidfd_open(session->peer.pid, 0) : -1;
    if (holder->pidfd < 0)
        return -1;
    holder->poll.data = holder;
    if (uv_poll_init(&session->server->loop, &holder->poll, holder->pidfd) != 0) {
        close(holder->pidfd);
        holder->pidfd = -1;
        errno = ENOMEM;
        return -1;
    }
    uv_poll_start(&holder->poll, UV_READABLE, on_death);
    uv_unref((uv_handle_t *)&holder->poll); /* the daemon need not outlive its clients */
    return 0;
}

static shuf_status unwatchable(const struct shuf__session *session, struct shuf__error *error)
{
    if (session->peer.pid <= 0)
        return shuf__fail(error, SHUF_DENIED,
                          "device memory: this process is in a PID namespace that the daemon does "
                          "not see, expected one that it can watch");
    return shuf__fail(error, SHUF_IO, "process %ld: %s", (long)session->peer.pid, strerror(errno));
}

static struct shuf__holder *make_holder(struct shuf__session *session)
{
    struct shuf__holder *holder = calloc(1, sizeof *holder);
    if (!holder)
        return NULL;
    holder->pidfd = -1;
    holder->pid = session->peer.pid;
    holder->session = session;
    session->holder = holder;
    LIST_INIT(&holder->exposures);
    return holder;
}

static struct shuf__exposure *find(struct shuf__holder *holder, const struct shuf__cell *cell)
{
    struct shuf__exposure *exposure = *recent(holder, cell->id);
    if (exposure && exposure->cell == cell)
        return exposure;
    LIST_FOREACH (exposure, &cell->exposures, of_cell)
        if (exposure->holder == holder)
            return *recent(holder, cell->id) = exposure;
    return NULL;
}

static bool expose(struct shuf__holder *holder, struct shuf__cell *cell)
{
    struct shuf__exposure *exposure = malloc(sizeof *exposure);
    if (!exposure)
        return false;
    exposure->holder = holder;
    exposure->cell = cell;
    *recent(holder, cell->id) = exposure;
    LIST_INSERT_HEAD(&holder->exposures, exposure, of_holder);
    LIST_INSERT_HEAD(&cell->exposures, exposure, of_cell);
    return true;
}

shuf_status shuf__holder_expose(struct shuf__session *session, struct shuf__cell *cell, bool *fresh,
                                struct shuf__error *error)
{
    struct shuf__holder *holder = session->holder ? session->holder : make_holder(session);
    bool proven = cell->block.kind == SHUF__MEMORY_MEMFD; /* by the kernel, when it is asked */
    *fresh = false;
    if (!holder)
        return shuf__fail(error, SHUF_NO_MEMORY, "lease: out of memory");
    if (find(holder, cell))
        return SHUF_OK;
    if (holder->pidfd < 0 && watch_process(holder, session) != 0 && !proven)
        return unwatchable(session, error);
    if (!expose(holder, cell))
        return shuf__fail(error, SHUF_NO_MEMORY, "lease: out of memory");
    *fresh = true;
    return SHUF_OK;
}

void shuf__holder_unmapped(struct shuf__session *session, uint64_t block)
{
    struct shuf__exposure *exposure;
    if (!session->holder)
        return;
    LIST_FOREACH (exposure, &session->holder->exposures, of_holder)
        if (exposure->cell->id == block) {
            end_exposure(exposure);
            return;
        }
}

void shuf__holder_unmapped_all(struct shuf__session *session)
{
    struct shuf__exposure *exposure;
    while (session->holder && (exposure = LIST_FIRST(&session->holder->exposures)) != NULL)
        end_exposure(exposure);
}

/* A process has one ghost, however many connections it has left. */
static struct shuf__holder *find_ghost(const struct shuf__session *session)
{
    struct shuf__holder *ghost;
    LIST_FOREACH (ghost, &session->server->ghosts, of_server)
        if (ghost->pid == session->peer.pid)
            return ghost;
    return NULL;
}

static void haunt(struct shuf__exposure *exposure, struct shuf__holder *ghost)
{
    LIST_REMOVE(exposure, of_holder);
    if (find(ghost, exposure->cell)) {
        LIST_REMOVE(exposure, of_cell);
        free(exposure);
        return;
    }
    exposure->holder = ghost;
    exposure->cell->ghosts++;
    LIST_INSERT_HEAD(&ghost->exposures, exposure, of_holder);
}

static void become_ghost(struct shuf__holder *holder, struct shuf__session *session)
{
    struct shuf__exposure *exposure;
    session->holder = NULL;
    holder->session = NULL;
    LIST_INSERT_HEAD(&session->server->ghosts, holder, of_server);
    LIST_FOREACH (exposure, &holder->exposures, of_holder)
        exposure->cell->ghosts++;
}

/* Of host memory the kernel tells who has it, whenever that is asked. */
static void leave_host_memory(struct shuf__holder *holder)
{
    struct shuf__exposure *next, *exposure = LIST_FIRST(&holder->exposures);
    for (; exposure; exposure = next) {
        next = LIST_NEXT(exposure, of_holder);
        if (exposure->cell->kind != SHUF__MEMORY_MEMFD)
            continue;
        exposure->cell->strayed = true;
        end_exposure(exposure);
    }
}

void shuf__holder_leave(struct shuf__session *session)
{
    struct shuf__exposure *exposure;
    struct shuf__holder *ghost, *holder = session->holder;
    if (!holder)
        return;
    leave_host_memory(holder);
    if (LIST_EMPTY(&holder->exposures)) {
        close_holder(holder);
    } else if (!(ghost = find_ghost(session))) {
        become_ghost(holder, session);
    } else {
        memset(holder->recent, 0, sizeof holder->recent);
        while ((exposure = LIST_FIRST(&holder->exposures)) != NULL)
            haunt(exposure, ghost);
        close_holder(holder);
    }
}

void shuf__holder_forget(struct shuf__cell *cell)
{
    struct shuf__exposure *exposure;
    while ((exposure = LIST_FIRST(&cell->exposures)) != NULL)
        remove_exposure(exposure);
}
