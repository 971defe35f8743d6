/* SPDX-License-Identifier: MIT
 *
 * See client_process.h.
 */
#include "client_process.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <search.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* Linux 6.5 */
#endif

struct shuf__pidfd {
    int fd;
    uv_poll_t poll;
    struct shuf__process *process;
};

/* ---- The table of processes ---- */

static struct shuf__process_list *list_of(const struct shuf__processes *processes, pid_t pid)
{
    return (struct shuf__process_list *)&processes->lists[(unsigned)pid % SHUF__PROCESS_LISTS];
}

static struct shuf__process *find(const struct shuf__processes *processes, pid_t pid)
{
    struct shuf__process *process;
    LIST_FOREACH (process, list_of(processes, pid), link)
        if (process->pid == pid && pid > 0)
            break;
    return process;
}

void shuf__processes_init(struct shuf__processes *processes, uv_loop_t *loop,
                          struct shuf__accounts *accounts)
{
    processes->loop = loop;
    processes->accounts = accounts;
    processes->count = 0;
    for (unsigned i = 0; i < SHUF__PROCESS_LISTS; i++)
        LIST_INIT(&processes->lists[i]);
}

bool shuf__processes_have(const struct shuf__processes *processes, pid_t pid)
{
    return find(processes, pid) != NULL;
}

static struct shuf__process *add(struct shuf__processes *processes, pid_t pid, uint32_t uid)
{
    struct shuf__process *process = calloc(1, sizeof *process);
    struct shuf__account *account = process ? shuf__account_of(processes->accounts, uid) : NULL;
    if (!account) {
        free(process);
        return NULL;
    }
    process->all = processes;
    process->pid = pid;
    process->account = account;
    account->processes++;
    processes->count++;
    LIST_INIT(&process->observers);
    LIST_INSERT_HEAD(list_of(processes, pid), process, link);
    return process;
}

struct shuf__process *shuf__process_of(struct shuf__processes *processes, pid_t pid, uint32_t uid)
{
    struct shuf__process *process = find(processes, pid);
    if (!process && !(process = add(processes, pid, uid)))
        return NULL;
    return shuf__process_ref(process);
}

struct shuf__process *shuf__process_ref(struct shuf__process *process)
{
    process->refs++;
    return process;
}

static void free_pidfd(uv_handle_t *handle)
{
    free(handle->data);
}

static void close_pidfd(struct shuf__process *process)
{
    if (!process->pidfd)
        return;
    uv_close((uv_handle_t *)&process->pidfd->poll, free_pidfd);
    close(process->pidfd->fd);
    process->pidfd = NULL;
}

void shuf__process_unref(struct shuf__process *process)
{
    assert(process->refs > 0);
    if (--process->refs > 0)
        return;
    close_pidfd(process);
    LIST_REMOVE(process, link);
    process->all->count--;
    process->account->processes--;
    shuf__account_unref(process->account);
    free(process);
}

/* ---- The end of a process ---- */

static void end(struct shuf__process *process)
{
    struct shuf__process_observer *observer;
    process->refs++; /* until this function ends */
    close_pidfd(process);
    while ((observer = LIST_FIRST(&process->observers)) != NULL) {
        shuf__process_stop_observing(observer);
        observer->ended(observer);
    }
    shuf__process_unref(process);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    const struct shuf__pidfd *pidfd = poll->data;
    (void)status;
    (void)events;
    end(pidfd->process);
}

static bool has_ended(int pidfd)
{
    struct pollfd poll_once = {.fd = pidfd, .events = POLLIN};
    return poll(&poll_once, 1, 0) != 0;
}

/* Without SO_PEERPIDFD, a process that got the PID after the end of the client would be taken for
 * the client. glibc has pidfd_open() only since 2.36. */
static int open_peer(int socket, pid_t pid)
{
    int fd = -1;
    socklen_t size = sizeof fd;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &fd, &size) == 0)
        return fd;
    return errno == ENOPROTOOPT ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
}

/* Opens a pidfd of a living process. */
static int open_living(int socket, pid_t pid)
{
    const int fd = open_peer(socket, pid);
    if (fd < 0 || !has_ended(fd))
        return fd;
    close(fd);
    errno = ESRCH;
    return -1;
}

bool shuf__process_is_observable(int socket, pid_t pid)
{
    const int fd = open_living(socket, pid);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static bool keep_pidfd(struct shuf__process *process, int fd)
{
    struct shuf__pidfd *pidfd = malloc(sizeof *pidfd);
    if (!pidfd || uv_poll_init(process->all->loop, &pidfd->poll, fd) != 0) {
        free(pidfd);
        close(fd);
        errno = ENOMEM;
        return false;
    }
    pidfd->fd = fd;
    pidfd->process = process;
    pidfd->poll.data = pidfd;
    process->pidfd = pidfd;
    uv_poll_start(&pidfd->poll, UV_READABLE, on_readable);
    uv_unref((uv_handle_t *)&pidfd->poll); /* the daemon does not wait for its clients to end */
    return true;
}

bool shuf__process_observe(struct shuf__process *process, int socket,
                           struct shuf__process_observer *observer)
{
    const int fd = open_living(socket, process->pid);
    if (fd < 0)
        return false;
    if (process->pidfd && has_ended(process->pidfd->fd))
        end(process); /* another process has its PID now, and this one is its client */
    if (process->pidfd)
        close(fd);
    else if (!keep_pidfd(process, fd))
        return false;
    observer->observes = true;
    LIST_INSERT_HEAD(&process->observers, observer, link);
    return true;
}

void shuf__process_stop_observing(struct shuf__process_observer *observer)
{
    if (observer->observes)
        LIST_REMOVE(observer, link);
    observer->observes = false;
}

/* ---- Watches ---- */

enum {
    AT_ONCE = 32, /* mappings whose blocks are freed in one step of the loop */
    MANY = 256,   /* pending allocations: as many as one sweep checks */
};

/* Watches the process at the other end of one connection, and lists its mappings. A process with
 * two connections has two watches. */
struct shuf__process_watch {
    struct shuf__process_watches *all;
    struct shuf__client *client;   /* NULL: detached, the connection has ended */
    struct shuf__process *process; /* a reference */
    struct shuf__account
        *account; /* a reference: of the connection's user, whom mappings count for */
    struct shuf__process_observer observer;
    unsigned refs; /* one until close_watch(), and one of each function that uses it */
    uint64_t only_mapped[SHUF__SIDES]; /* bytes, while they are counted */
    LIST_HEAD(, shuf__process_mapping) mappings;
    void *tree; /* the same mappings, by number of the block */
    LIST_ENTRY(shuf__process_watch) link;
};

static void unref_watch(struct shuf__process_watch *watch)
{
    if (--watch->refs == 0)
        free(watch);
}

static void close_watch(struct shuf__process_watch *watch)
{
    if (watch->client)
        watch->client->watch = NULL;
    else
        LIST_REMOVE(watch, link);
    shuf__process_stop_observing(&watch->observer);
    shuf__process_unref(watch->process);
    shuf__account_unref(watch->account);
    unref_watch(watch);
}

/* ---- Mappings ---- */

static int compare(const void *a, const void *b)
{
    const struct shuf__process_mapping *k = a, *l = b;
    return (k->number > l->number) - (k->number < l->number);
}

static struct shuf__process_mapping *find_mapping(const struct shuf__process_watch *watch,
                                                  uint64_t number)
{
    const struct shuf__process_mapping key = {.number = number};
    struct shuf__process_mapping *const *found = tfind(&key, &watch->tree, compare);
    return found ? *found : NULL;
}

static bool add_mapping(struct shuf__process_watch *watch, struct shuf__allocation *allocation)
{
    struct shuf__process_mapping *mapping = malloc(sizeof *mapping);
    if (!mapping)
        return false;
    mapping->watch = watch;
    mapping->allocation = allocation;
    mapping->number = allocation->number;
    if (!tsearch(mapping, &watch->tree, compare)) {
        free(mapping);
        return false;
    }
    watch->account->mappings++;
    LIST_INSERT_HEAD(&watch->mappings, mapping, of_process);
    LIST_INSERT_HEAD(&allocation->mappings, mapping, of_allocation);
    return true;
}

/* Removes a mapping. If it is the last one of a detached watch, closes the watch. */
static void remove_mapping(struct shuf__process_mapping *mapping)
{
    struct shuf__process_watch *watch = mapping->watch;
    tdelete(mapping, &watch->tree, compare);
    LIST_REMOVE(mapping, of_process);
    LIST_REMOVE(mapping, of_allocation);
    if (!watch->client)
        mapping->allocation->detached--;
    mapping->allocation->found = SHUF__FOUND_NOTHING; /* so the kernel is asked again */
    watch->account->mappings--;
    free(mapping);
    if (!watch->client && LIST_EMPTY(&watch->mappings))
        close_watch(watch);
}

/* Removes a mapping, and frees the block if it was the last one of a pending block. To ask the
 * kernel about many blocks takes long. After the first ones, a sweep frees those of host memory. */
static void end_mapping(struct shuf__process_mapping *mapping, unsigned *ended)
{
    struct shuf__allocation *allocation = mapping->allocation;
    remove_mapping(mapping);
    if (allocation->kind != SHUF__MEMORY_MEMFD || (*ended)++ < AT_ONCE)
        shuf__allocation_free_if_unmapped(allocation);
    else
        shuf__allocation_free_soon(allocation);
}

/* The last end_mapping() closes a detached watch. */
static void end_mappings(struct shuf__process_watch *watch)
{
    struct shuf__process_mapping *mapping;
    unsigned ended = 0;
    watch->refs++;
    while ((mapping = LIST_FIRST(&watch->mappings)) != NULL)
        end_mapping(mapping, &ended);
    unref_watch(watch);
}

static void forget_mappings(struct shuf__allocation *allocation)
{
    struct shuf__process_mapping *mapping;
    while ((mapping = LIST_FIRST(&allocation->mappings)) != NULL)
        remove_mapping(mapping);
}

/* ---- The end of a watched process ---- */

static void on_process_end(struct shuf__process_observer *observer)
{
    struct shuf__process_watch *watch =
        (struct shuf__process_watch *)((char *)observer -
                                       offsetof(struct shuf__process_watch, observer));
    watch->refs++;
    if (watch->client)
        watch->client->died(watch->client); /* the turn of its session closes the watch */
    end_mappings(watch);                    /* the last one closes a detached watch */
    unref_watch(watch);
}

/* False, with errno, if the process cannot be observed. */
static bool is_observed(struct shuf__process_watch *watch, const struct shuf__client *client)
{
    return watch->observer.observes ||
           shuf__process_observe(watch->process, client->socket, &watch->observer);
}

static shuf_status unwatchable(const struct shuf__client *client, struct shuf__error *error)
{
    return shuf__fail(error, SHUF_IO, "process %ld: %s", (long)client->pid, strerror(errno));
}

static struct shuf__process_watch *make_watch(struct shuf__client *client)
{
    struct shuf__process_watch *watch = calloc(1, sizeof *watch);
    if (!watch)
        return NULL;
    watch->account = shuf__account_of(client->all->processes.accounts, client->uid);
    if (!watch->account) {
        free(watch);
        return NULL;
    }
    watch->all = client->all;
    watch->refs = 1;
    watch->client = client;
    watch->observer.ended = on_process_end;
    watch->process = shuf__process_ref(client->process);
    client->watch = watch;
    LIST_INIT(&watch->mappings);
    return watch;
}

shuf_status shuf__client_add_mapping(struct shuf__client *client,
                                     struct shuf__allocation *allocation, bool *fresh,
                                     struct shuf__error *error)
{
    struct shuf__process_watch *watch = client->watch ? client->watch : make_watch(client);
    bool kernel_knows = allocation->block.kind == SHUF__MEMORY_MEMFD;
    allocation->was_shared |= kernel_knows;
    *fresh = false;
    if (!watch)
        return shuf__fail(error, SHUF_NO_MEMORY, "lease: out of memory");
    if (find_mapping(watch, allocation->number))
        return SHUF_OK;
    if (!is_observed(watch, client) && !kernel_knows)
        return unwatchable(client, error);
    if (!add_mapping(watch, allocation))
        return shuf__fail(error, SHUF_NO_MEMORY, "lease: out of memory");
    *fresh = true;
    return SHUF_OK;
}

void shuf__client_unmapped(struct shuf__client *client, const uint64_t *blocks, size_t count)
{
    unsigned ended = 0;
    for (size_t i = 0; client->watch && i < count; i++) {
        const uint64_t number = shuf__ids_number(client->all->ids, blocks[i]);
        struct shuf__process_mapping *mapping = find_mapping(client->watch, number);
        if (mapping && mapping->allocation->id == blocks[i])
            end_mapping(mapping, &ended);
    }
}

void shuf__client_unmapped_all(struct shuf__client *client)
{
    if (client->watch)
        end_mappings(client->watch);
}

/* ---- Mapped without a reference ---- */

/* Many pending allocations count as mapped until the sweep has asked the kernel again, because to
 * ask about thousands of them takes long. */
static bool is_only_mapped(const struct shuf__allocation *allocation)
{
    if (!allocation->account || !(allocation->pending_free || allocation->size_class))
        return false;
    return (allocation->pending_free && allocation->all->pending_free_count > MANY) ||
           !shuf__allocation_is_unmapped(allocation);
}

/* Adds the block's bytes to each process that has it mapped. Notes the process with the most bytes
 * in the user's account. */
static void add_to_processes(const struct shuf__allocation *allocation)
{
    const struct shuf__process_mapping *mapping;
    struct shuf__account *account = allocation->account;
    const enum shuf__side side = shuf__side_of(allocation->kind);
    LIST_FOREACH (mapping, &allocation->mappings, of_allocation) {
        struct shuf__process_watch *watch = mapping->watch;
        watch->only_mapped[side] += allocation->bytes;
        if (watch->only_mapped[side] > account->most_mapped[side]) {
            account->most_mapped[side] = watch->only_mapped[side];
            account->mapped_pid[side] = watch->process->pid;
        }
    }
}

static void clear(struct shuf__allocations *allocations)
{
    struct shuf__account *account;
    const struct shuf__allocation *allocation;
    const struct shuf__process_mapping *mapping;
    memset(allocations->mapped, 0, sizeof allocations->mapped);
    LIST_FOREACH (account, &allocations->accounts.list, link) {
        memset(account->mapped, 0, sizeof account->mapped);
        memset(account->most_mapped, 0, sizeof account->most_mapped);
        memset(account->mapped_pid, 0, sizeof account->mapped_pid);
    }
    LIST_FOREACH (allocation, &allocations->list, link)
        LIST_FOREACH (mapping, &allocation->mappings, of_allocation)
            memset(mapping->watch->only_mapped, 0, sizeof mapping->watch->only_mapped);
}

void shuf__mapped_bytes_read(struct shuf__allocations *allocations)
{
    const struct shuf__allocation *allocation;
    if (shuf__reading_is_fresh(&allocations->mapped_reading))
        return;
    shuf__reading_begin(&allocations->mapped_reading);
    clear(allocations);
    LIST_FOREACH (allocation, &allocations->list, link) {
        if (!is_only_mapped(allocation))
            continue;
        const enum shuf__side side = shuf__side_of(allocation->kind);
        allocations->mapped[side] += allocation->bytes;
        allocation->account->mapped[side] += allocation->bytes;
        add_to_processes(allocation);
    }
    shuf__reading_end(&allocations->mapped_reading);
}

/* ---- The end of a connection ---- */

/* A process has at most one detached watch, even if several of its connections have ended. */
static struct shuf__process_watch *find_detached(const struct shuf__process_watch *other)
{
    struct shuf__process_watch *watch;
    LIST_FOREACH (watch, &other->all->detached, link)
        if (watch->process == other->process)
            break;
    return watch;
}

static void detach(struct shuf__process_watch *watch)
{
    struct shuf__process_mapping *mapping;
    watch->client->watch = NULL;
    watch->client = NULL;
    LIST_INSERT_HEAD(&watch->all->detached, watch, link);
    LIST_FOREACH (mapping, &watch->mappings, of_process)
        mapping->allocation->detached++;
}

/* Without memory for the tree's node, a block may get two records of the process. */
static void merge_mapping(struct shuf__process_mapping *mapping,
                          struct shuf__process_watch *detached)
{
    LIST_REMOVE(mapping, of_process);
    tdelete(mapping, &mapping->watch->tree, compare);
    mapping->watch->account->mappings--;
    if (find_mapping(detached, mapping->number)) {
        LIST_REMOVE(mapping, of_allocation);
        free(mapping);
        return;
    }
    tsearch(mapping, &detached->tree, compare);
    mapping->watch = detached;
    detached->account->mappings++;
    mapping->allocation->detached++;
    LIST_INSERT_HEAD(&detached->mappings, mapping, of_process);
}

static void merge_mappings(struct shuf__process_watch *watch, struct shuf__process_watch *detached)
{
    struct shuf__process_mapping *mapping;
    while ((mapping = LIST_FIRST(&watch->mappings)) != NULL)
        merge_mapping(mapping, detached);
}

/* Ends the mappings of host memory, because the kernel can tell later whether it is mapped. */
static void end_host_mappings(struct shuf__process_watch *watch)
{
    struct shuf__process_mapping *next, *mapping = LIST_FIRST(&watch->mappings);
    unsigned ended = 0;
    for (; mapping; mapping = next) {
        next = LIST_NEXT(mapping, of_process);
        if (mapping->allocation->kind != SHUF__MEMORY_MEMFD)
            continue;
        mapping->allocation->untracked = true;
        end_mapping(mapping, &ended);
    }
}

void shuf__client_detach(struct shuf__client *client)
{
    struct shuf__process_watch *detached, *watch = client->watch;
    if (client->process)
        shuf__process_unref(client->process);
    client->process = NULL;
    if (!watch)
        return;
    end_host_mappings(watch);
    if (LIST_EMPTY(&watch->mappings)) {
        close_watch(watch);
    } else if (!(detached = find_detached(watch))) {
        detach(watch);
    } else {
        merge_mappings(watch, detached);
        close_watch(watch);
    }
}

void shuf__process_watches_init(struct shuf__process_watches *watches, uv_loop_t *loop,
                                struct shuf__allocations *allocations)
{
    shuf__processes_init(&watches->processes, loop, &allocations->accounts);
    LIST_INIT(&watches->detached);
    watches->ids = &allocations->ids;
    allocations->on_free = forget_mappings;
}
