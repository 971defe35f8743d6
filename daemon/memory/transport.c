/* SPDX-License-Identifier: MIT
 *
 * See transport.h.
 */
#include "transport.h"

#include "host/memfd.h"
#include "identity.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef shuf_status check(struct shuf__client *client, struct shuf__error *error);

static check check_watchable, check_same_user, check_file_leases;

/* The transport with the least copying comes first. */
static const struct {
    Shuf__Transport transport;
    const char *name;
    enum shuf__memory kind; /* SHUF__MEMORY_KINDS: any */
    check *may;             /* NULL: every client may */
} table[] = {
    {SHUF__TRANSPORT__TRANSPORT_CUDA_FD, "cuda-fd", SHUF__MEMORY_CUDA_FD, check_watchable},
    {SHUF__TRANSPORT__TRANSPORT_CUDA_IPC, "cuda-ipc", SHUF__MEMORY_CUDA_IPC, check_same_user},
    {SHUF__TRANSPORT__TRANSPORT_MEMFD, "memfd", SHUF__MEMORY_MEMFD, check_file_leases},
    {SHUF__TRANSPORT__TRANSPORT_INLINE, "inline", SHUF__MEMORY_KINDS, NULL},
};

enum { TRANSPORTS = sizeof table / sizeof table[0] };

const char *shuf__transport_name(Shuf__Transport transport)
{
    for (int i = 0; i < TRANSPORTS; i++)
        if (table[i].transport == transport)
            return table[i].name;
    return "none";
}

/* The daemon must see the end of the process, because only that proves that the process no longer
 * uses device memory. */
static shuf_status check_watchable(struct shuf__client *client, struct shuf__error *error)
{
    if (client->pid > 0 || shuf__process_is_observable(client->socket, client->pid))
        return SHUF_OK;
    return shuf__fail(error, SHUF_DENIED,
                      "transport cuda-fd, cuda-ipc: this process is in a PID namespace that the "
                      "daemon does not see; expected Linux 6.5 or later, or hostPID of the daemon");
}

static bool read_namespace(pid_t pid, char *name, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/ns/pid", (long)pid);
    ssize_t length = readlink(path, name, size - 1);
    if (length < 0)
        return false;
    name[length] = '\0';
    return true;
}

static bool shares_namespace(const struct shuf__client *client)
{
    char own[64], its[64];
    return read_namespace(getpid(), own, sizeof own) &&
           read_namespace(client->pid, its, sizeof its) && strcmp(own, its) == 0;
}

/* The driver finds the exporting process by its PID, and trusts every process that knows the
 * handle. So this transport is only for processes of the daemon's own user and PID namespace, which
 * could write to the daemon's memory anyway. A process never leaves its PID namespace, so one check
 * is enough. */
static shuf_status check_same_user(struct shuf__client *client, struct shuf__error *error)
{
    if (client->uid != geteuid() || shuf__uid_is_overflow(client->uid))
        return shuf__fail(error, SHUF_DENIED,
                          "transport cuda-ipc: uid %ld, expected the daemon's own, %ld (cuda-fd "
                          "crosses users)",
                          (long)client->uid, (long)geteuid());
    if (check_watchable(client, error))
        return error->status;
    client->same_namespace = client->same_namespace || shares_namespace(client);
    if (client->same_namespace)
        return SHUF_OK;
    return shuf__fail(error, SHUF_DENIED,
                      "transport cuda-ipc: this process is in another PID namespace, expected "
                      "the daemon's own (cuda-fd crosses namespaces)");
}

const char *shuf__transport_lending_fault(void)
{
    return shuf__memfd_lending_fault();
}

const char *shuf__transport_memfd_fault(void)
{
    return shuf__memfd_fault();
}

/* Without file leases of the kernel, the daemon cannot learn when a lent block is no longer mapped.
 */
static shuf_status check_file_leases(struct shuf__client *client, struct shuf__error *error)
{
    (void)client;
    if (!*shuf__transport_lending_fault())
        return SHUF_OK;
    return shuf__fail(error, SHUF_DENIED,
                      "transport memfd: results are copied and not lent, so expected inline too: "
                      "%s",
                      shuf__transport_lending_fault());
}

static bool accepts(const struct shuf__accepted *accepted, Shuf__Transport transport)
{
    for (size_t i = 0; i < accepted->count; i++)
        if (accepted->list[i] == transport)
            return true;
    return false;
}

static bool wants_values(const struct shuf__accepted *accepted)
{
    for (size_t i = 0; i < accepted->count; i++)
        if (accepted->list[i] != SHUF__TRANSPORT__TRANSPORT_NONE)
            return true;
    return false;
}

/* Whether the backend allocates that kind, on the side of `beside` if it is given. */
static bool is_made(const struct shuf__backend *backend, const struct shuf__beside *beside,
                    enum shuf__memory kind)
{
    return backend->ops->makes[kind] &&
           (!beside || shuf__side_of(kind) == shuf__side_of(beside->kind));
}

/* The kind of memory for a transport that works with every kind. It is the backend's own kind,
 * except if `beside` is on the other side. Then it is the kind of `beside`. */
static enum shuf__memory any_kind(const struct shuf__backend *backend,
                                  const struct shuf__beside *beside)
{
    return beside && shuf__side_of(beside->kind) != shuf__side_of(backend->ops->own)
               ? beside->kind
               : backend->ops->own;
}

static shuf_status none_of_them(const struct shuf__backend *backend,
                                const struct shuf__accepted *accepted,
                                const struct shuf__beside *beside, struct shuf__error *error)
{
    char accepted_names[64] = "", has[64] = "";
    for (int i = 0; i < TRANSPORTS; i++) {
        char *list = accepts(accepted, table[i].transport) ? accepted_names : NULL;
        if (table[i].kind == SHUF__MEMORY_KINDS || is_made(backend, beside, table[i].kind))
            list = has;
        if (list)
            snprintf(list + strlen(list), sizeof has - strlen(list), "%s%s", *list ? ", " : "",
                     table[i].name);
    }
    if (beside)
        return shuf__fail(error, SHUF_INVALID, "transport %s: %s in %s memory, expected %s",
                          *accepted_names ? accepted_names : "(unknown)", beside->what,
                          shuf__side_of(beside->kind) == SHUF__SIDE_HOST ? "host" : "device", has);
    return shuf__fail(error, SHUF_INVALID, "transport %s: the backend %s has only %s",
                      *accepted_names ? accepted_names : "(unknown)", backend->ops->name, has);
}

shuf_status shuf__transport_pick(struct shuf__client *client, const struct shuf__backend *backend,
                                 const struct shuf__accepted *accepted,
                                 const struct shuf__beside *beside, Shuf__Transport *transport,
                                 enum shuf__memory *kind, struct shuf__error *error)
{
    bool refused = false;
    *transport = SHUF__TRANSPORT__TRANSPORT_NONE;
    *kind = any_kind(backend, beside);
    if (!wants_values(accepted))
        return SHUF_OK;
    for (int i = 0; i < TRANSPORTS; i++) {
        bool any = table[i].kind == SHUF__MEMORY_KINDS;
        if (!accepts(accepted, table[i].transport) ||
            (!any && !is_made(backend, beside, table[i].kind)))
            continue;
        if (table[i].may && table[i].may(client, error)) {
            refused = true;
            continue;
        }
        *transport = table[i].transport;
        *kind = any ? *kind : table[i].kind;
        return SHUF_OK;
    }
    return refused ? error->status : none_of_them(backend, accepted, beside, error);
}
