/* SPDX-License-Identifier: MIT
 *
 * See client_process.h.
 */
#include "client_process.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { RECENT = 128 };

/* The process at the other end of one connection. A process with two connections has two of these.
 */
struct shuf__client_process {
    struct shuf__client_processes *all;
    struct shuf__client *client; /* NULL: detached, its connection has ended */
    pid_t pid;
    int pidfd; /* -1: the process cannot be watched */
    uv_poll_t poll;
    uint64_t only_mapped[SHUF__SIDES]; /* bytes, while they are counted */
    LIST_HEAD(, shuf__process_mapping) mappings;
    struct shuf__process_mapping *recent[RECENT]; /* a cache of mappings, by number of the block */
    LIST_ENTRY(shuf__client_process) link;
};

/* glibc has pidfd_open() only since 2.36. Many machines that use the Python wheel have an older
 * glibc. */
static int open_pidfd(pid_t pid)
{
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

static void free_process(uv_handle_t *handle)
{
    struct shuf__client_process *process = handle->data;
    close(process->pidfd);
    free(process);
}

static void close_process(struct shuf__client_process *process)
{
    if (process->client)
        process->client->process = NULL;
    else
        LIST_REMOVE(process, link);
    if (process->pidfd >= 0)
        uv_close((uv_handle_t *)&process->poll, free_process);
    else
        free(process);
}

/* ---- mappings ---- */

static struct shuf__process_mapping **recent(struct shuf__client_process *process, uint64_t number)
{
    return &process->recent[number % RECENT];
}

static struct shuf__process_mapping *find_mapping(struct shuf__client_process *process,
                                                  const struct shuf__allocation *allocation)
{
    struct shuf__process_mapping *mapping = *recent(process, allocation->number);
    if (mapping && mapping->allocation == allocation)
        return mapping;
    LIST_FOREACH (mapping, &allocation->mappings, of_allocation)
        if (mapping->process == process)
            return *recent(process, allocation->number) = mapping;
    return NULL;
}

static bool add_mapping(struct shuf__client_process *process, struct shuf__allocation *allocation)
{
    struct shuf__process_mapping *mapping = malloc(sizeof *mapping);
    if (!mapping)
        return false;
    mapping->process = process;
    mapping->allocation = allocation;
    *recent(process, allocation->number) = mapping;
    LIST_INSERT_HEAD(&process->mappings, mapping, of_process);
    LIST_INSERT_HEAD(&allocation->mappings, mapping, of_allocation);
    return true;
}

/* Removes a mapping. If it is the last one of a detached process, closes the process. */
static void remove_mapping(struct shuf__process_mapping *mapping)
{
    struct shuf__client_process *process = mapping->process;
    struct shuf__process_mapping **seen = recent(process, mapping->allocation->number);
    if (*seen == mapping)
        *seen = NULL;
    LIST_REMOVE(mapping, of_process);
    LIST_REMOVE(mapping, of_allocation);
    if (!process->client)
        mapping->allocation->detached--;
    free(mapping);
    if (!process->client && LIST_EMPTY(&process->mappings))
        close_process(process);
}

/* Removes a mapping, and frees the block if it was the last one of a pending block. */
static void end_mapping(struct shuf__process_mapping *mapping)
{
    struct shuf__allocation *allocation = mapping->allocation;
    remove_mapping(mapping);
    shuf__allocation_free_if_unmapped(allocation);
}

/* The last end_mapping() may close the process. This loop may still read the struct, because a
 * callback of libuv frees it later. */
static void end_mappings(struct shuf__client_process *process)
{
    struct shuf__process_mapping *mapping;
    while ((mapping = LIST_FIRST(&process->mappings)) != NULL)
        end_mapping(mapping);
}

static void forget_mappings(struct shuf__allocation *allocation)
{
    struct shuf__process_mapping *mapping;
    while ((mapping = LIST_FIRST(&allocation->mappings)) != NULL)
        remove_mapping(mapping);
}

/* ---- processes ---- */

static void on_process_death(uv_poll_t *poll, int status, int events)
{
    struct shuf__client_process *process = poll->data;
    (void)status;
    (void)events;
    uv_poll_stop(poll);
    if (process->client)
        process->client->died(process->client); /* detaches the process */
    end_mappings(process);                      /* the last one closes the process */
}

static int watch_process(struct shuf__client_process *process)
{
    process->pidfd = process->pid > 0 ? open_pidfd(process->pid) : -1;
    if (process->pidfd < 0)
        return -1;
    process->poll.data = process;
    if (uv_poll_init(process->all->loop, &process->poll, process->pidfd) != 0) {
        close(process->pidfd);
        process->pidfd = -1;
        errno = ENOMEM;
        return -1;
    }
    uv_poll_start(&process->poll, UV_READABLE, on_process_death);
    uv_unref((uv_handle_t *)&process->poll); /* the daemon does not wait for its clients to end */
    return 0;
}

static shuf_status unwatchable(const struct shuf__client *client, struct shuf__error *error)
{
    if (client->pid <= 0)
        return shuf__fail(error, SHUF_DENIED,
                          "device memory: this process is in a PID namespace that the daemon does "
                          "not see, expected one that it can watch");
    return shuf__fail(error, SHUF_IO, "process %ld: %s", (long)client->pid, strerror(errno));
}

static struct shuf__client_process *make_process(struct shuf__client *client)
{
    struct shuf__client_process *process = calloc(1, sizeof *process);
    if (!process)
        return NULL;
    process->all = client->all;
    process->pidfd = -1;
    process->pid = client->pid;
    process->client = client;
    client->process = process;
    LIST_INIT(&process->mappings);
    return process;
}

shuf_status shuf__client_add_mapping(struct shuf__client *client,
                                     struct shuf__allocation *allocation, bool *fresh,
                                     struct shuf__error *error)
{
    struct shuf__client_process *process = client->process ? client->process : make_process(client);
    bool kernel_knows = allocation->block.kind == SHUF__MEMORY_MEMFD;
    allocation->was_shared |= kernel_knows;
    *fresh = false;
    if (!process)
        return shuf__fail(error, SHUF_NO_MEMORY, "lease: out of memory");
    if (find_mapping(process, allocation))
        return SHUF_OK;
    if (process->pidfd < 0 && watch_process(process) != 0 && !kernel_knows)
        return unwatchable(client, error);
    if (!add_mapping(process, allocation))
        return shuf__fail(error, SHUF_NO_MEMORY, "lease: out of memory");
    *fresh = true;
    return SHUF_OK;
}

void shuf__client_unmapped(struct shuf__client *client, uint64_t block)
{
    struct shuf__process_mapping *mapping;
    if (!client->process)
        return;
    LIST_FOREACH (mapping, &client->process->mappings, of_process)
        if (mapping->allocation->id == block) {
            end_mapping(mapping);
            return;
        }
}

void shuf__client_unmapped_all(struct shuf__client *client)
{
    if (client->process)
        end_mappings(client->process);
}

/* ---- mapped without a reference ---- */

static bool is_only_mapped(const struct shuf__allocation *allocation)
{
    return allocation->account && (allocation->pending_free || allocation->size_class) &&
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
        struct shuf__client_process *process = mapping->process;
        process->only_mapped[side] += allocation->bytes;
        if (process->only_mapped[side] > account->most_mapped[side]) {
            account->most_mapped[side] = process->only_mapped[side];
            account->mapped_pid[side] = process->pid;
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
            memset(mapping->process->only_mapped, 0, sizeof mapping->process->only_mapped);
}

void shuf__mapped_bytes_read(struct shuf__allocations *allocations)
{
    const struct shuf__allocation *allocation;
    if (shuf__reading_is_fresh(&allocations->mapped_reading, SHUF__QUICK_WALK_NS))
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

/* ---- the end of a connection ---- */

/* A process has at most one detached struct, even if several of its connections have ended. */
static struct shuf__client_process *find_detached(const struct shuf__client *client)
{
    struct shuf__client_process *process;
    LIST_FOREACH (process, &client->all->detached, link)
        if (process->pid == client->pid)
            return process;
    return NULL;
}

static void detach(struct shuf__client_process *process)
{
    struct shuf__process_mapping *mapping;
    process->client->process = NULL;
    process->client = NULL;
    LIST_INSERT_HEAD(&process->all->detached, process, link);
    LIST_FOREACH (mapping, &process->mappings, of_process)
        mapping->allocation->detached++;
}

static void merge_mapping(struct shuf__process_mapping *mapping,
                          struct shuf__client_process *detached)
{
    LIST_REMOVE(mapping, of_process);
    if (find_mapping(detached, mapping->allocation)) {
        LIST_REMOVE(mapping, of_allocation);
        free(mapping);
        return;
    }
    mapping->process = detached;
    mapping->allocation->detached++;
    LIST_INSERT_HEAD(&detached->mappings, mapping, of_process);
}

static void merge_mappings(struct shuf__client_process *process,
                           struct shuf__client_process *detached)
{
    struct shuf__process_mapping *mapping;
    memset(process->recent, 0, sizeof process->recent);
    while ((mapping = LIST_FIRST(&process->mappings)) != NULL)
        merge_mapping(mapping, detached);
}

/* Ends the mappings of host memory, because the kernel can tell later whether it is mapped. */
static void end_host_mappings(struct shuf__client_process *process)
{
    struct shuf__process_mapping *next, *mapping = LIST_FIRST(&process->mappings);
    for (; mapping; mapping = next) {
        next = LIST_NEXT(mapping, of_process);
        if (mapping->allocation->kind != SHUF__MEMORY_MEMFD)
            continue;
        mapping->allocation->untracked = true;
        end_mapping(mapping);
    }
}

void shuf__client_detach(struct shuf__client *client)
{
    struct shuf__client_process *detached, *process = client->process;
    if (!process)
        return;
    end_host_mappings(process);
    if (LIST_EMPTY(&process->mappings)) {
        close_process(process);
    } else if (!(detached = find_detached(client))) {
        detach(process);
    } else {
        merge_mappings(process, detached);
        close_process(process);
    }
}

void shuf__client_processes_init(struct shuf__client_processes *processes, uv_loop_t *loop,
                                 struct shuf__allocations *allocations)
{
    processes->loop = loop;
    LIST_INIT(&processes->detached);
    allocations->on_free = forget_mappings;
}
