/* SPDX-License-Identifier: MIT
 *
 * See client_process.h.
 */
#include "client_process.h"

#include "net/session.h"
#include "server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

static void free_process(uv_handle_t *handle)
{
    struct shuf__client_process *holder = handle->data;
    close(holder->pidfd);
    free(holder);
}

static void close_process(struct shuf__client_process *holder)
{
    if (holder->session)
        holder->session->holder = NULL;
    else
        LIST_REMOVE(holder, of_server);
    if (holder->pidfd >= 0)
        uv_close((uv_handle_t *)&holder->poll, free_process);
    else
        free(holder);
}

static struct shuf__mapping **recent(struct shuf__client_process *holder, uint64_t block)
{
    return &holder->recent[block % SHUF__RECENT];
}

static void remove_mapping(struct shuf__mapping *mapping)
{
    struct shuf__client_process *holder = mapping->holder;
    struct shuf__mapping **seen = recent(holder, mapping->allocation->id);
    if (*seen == mapping)
        *seen = NULL;
    LIST_REMOVE(mapping, of_process);
    LIST_REMOVE(mapping, of_allocation);
    if (!holder->session)
        mapping->allocation->detached--;
    free(mapping);
    if (!holder->session && LIST_EMPTY(&holder->mappings))
        close_process(holder);
}

/* The block may be free now. */
static void end_mapping(struct shuf__mapping *mapping)
{
    struct shuf__allocation *allocation = mapping->allocation;
    remove_mapping(mapping);
    shuf__allocation_was_unmapped(allocation);
}

/* Of a watched holder without a session, whose memory stays until the loop has run. */
static void end_mappings(struct shuf__client_process *holder)
{
    struct shuf__mapping *mapping;
    while ((mapping = LIST_FIRST(&holder->mappings)) != NULL)
        end_mapping(mapping);
}

static void on_death(uv_poll_t *poll, int status, int events)
{
    struct shuf__client_process *holder = poll->data;
    (void)status;
    (void)events;
    uv_poll_stop(poll);
    if (holder->session)
        shuf__session_close(holder->session); /* which leaves the holder */
    end_mappings(holder);                     /* the last one closes it */
}

static int watch_process(struct shuf__client_process *holder, struct shuf__session *session)
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

static struct shuf__client_process *make_process(struct shuf__session *session)
{
    struct shuf__client_process *holder = calloc(1, sizeof *holder);
    if (!holder)
        return NULL;
    holder->pidfd = -1;
    holder->pid = session->peer.pid;
    holder->session = session;
    session->holder = holder;
    LIST_INIT(&holder->mappings);
    return holder;
}

static struct shuf__mapping *find(struct shuf__client_process *holder,
                                  const struct shuf__allocation *allocation)
{
    struct shuf__mapping *mapping = *recent(holder, allocation->id);
    if (mapping && mapping->allocation == allocation)
        return mapping;
    LIST_FOREACH (mapping, &allocation->mappings, of_allocation)
        if (mapping->holder == holder)
            return *recent(holder, allocation->id) = mapping;
    return NULL;
}

static bool add_mapping(struct shuf__client_process *holder, struct shuf__allocation *allocation)
{
    struct shuf__mapping *mapping = malloc(sizeof *mapping);
    if (!mapping)
        return false;
    mapping->holder = holder;
    mapping->allocation = allocation;
    *recent(holder, allocation->id) = mapping;
    LIST_INSERT_HEAD(&holder->mappings, mapping, of_process);
    LIST_INSERT_HEAD(&allocation->mappings, mapping, of_allocation);
    return true;
}

shuf_status shuf__client_process_map(struct shuf__session *session,
                                     struct shuf__allocation *allocation, bool *fresh,
                                     struct shuf__error *error)
{
    struct shuf__client_process *holder = session->holder ? session->holder : make_process(session);
    bool proven =
        allocation->block.kind == SHUF__MEMORY_MEMFD; /* by the kernel, when it is asked */
    *fresh = false;
    if (!holder)
        return shuf__fail(error, SHUF_NO_MEMORY, "lease: out of memory");
    if (find(holder, allocation))
        return SHUF_OK;
    if (holder->pidfd < 0 && watch_process(holder, session) != 0 && !proven)
        return unwatchable(session, error);
    if (!add_mapping(holder, allocation))
        return shuf__fail(error, SHUF_NO_MEMORY, "lease: out of memory");
    *fresh = true;
    return SHUF_OK;
}

void shuf__client_process_unmapped(struct shuf__session *session, uint64_t block)
{
    struct shuf__mapping *mapping;
    if (!session->holder)
        return;
    LIST_FOREACH (mapping, &session->holder->mappings, of_process)
        if (mapping->allocation->id == block) {
            end_mapping(mapping);
            return;
        }
}

void shuf__client_process_unmapped_all(struct shuf__session *session)
{
    struct shuf__mapping *mapping;
    while (session->holder && (mapping = LIST_FIRST(&session->holder->mappings)) != NULL)
        end_mapping(mapping);
}

/* A process has one detached, however many connections it has left. */
static struct shuf__client_process *find_detached(const struct shuf__session *session)
{
    struct shuf__client_process *detached;
    LIST_FOREACH (detached, &session->server->detached, of_server)
        if (detached->pid == session->peer.pid)
            return detached;
    return NULL;
}

static void merge_mapping(struct shuf__mapping *mapping, struct shuf__client_process *detached)
{
    LIST_REMOVE(mapping, of_process);
    if (find(detached, mapping->allocation)) {
        LIST_REMOVE(mapping, of_allocation);
        free(mapping);
        return;
    }
    mapping->holder = detached;
    mapping->allocation->detached++;
    LIST_INSERT_HEAD(&detached->mappings, mapping, of_process);
}

static void detach(struct shuf__client_process *holder, struct shuf__session *session)
{
    struct shuf__mapping *mapping;
    session->holder = NULL;
    holder->session = NULL;
    LIST_INSERT_HEAD(&session->server->detached, holder, of_server);
    LIST_FOREACH (mapping, &holder->mappings, of_process)
        mapping->allocation->detached++;
}

/* Of host memory the kernel tells who has it, whenever that is asked. */
static void leave_host_memory(struct shuf__client_process *holder)
{
    struct shuf__mapping *next, *mapping = LIST_FIRST(&holder->mappings);
    for (; mapping; mapping = next) {
        next = LIST_NEXT(mapping, of_process);
        if (mapping->allocation->kind != SHUF__MEMORY_MEMFD)
            continue;
        mapping->allocation->untracked = true;
        end_mapping(mapping);
    }
}

void shuf__client_process_detach(struct shuf__session *session)
{
    struct shuf__mapping *mapping;
    struct shuf__client_process *detached, *holder = session->holder;
    if (!holder)
        return;
    leave_host_memory(holder);
    if (LIST_EMPTY(&holder->mappings)) {
        close_process(holder);
    } else if (!(detached = find_detached(session))) {
        detach(holder, session);
    } else {
        memset(holder->recent, 0, sizeof holder->recent);
        while ((mapping = LIST_FIRST(&holder->mappings)) != NULL)
            merge_mapping(mapping, detached);
        close_process(holder);
    }
}

void shuf__client_process_forget(struct shuf__allocation *allocation)
{
    struct shuf__mapping *mapping;
    while ((mapping = LIST_FIRST(&allocation->mappings)) != NULL)
        remove_mapping(mapping);
}
