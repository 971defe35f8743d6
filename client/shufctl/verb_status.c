/* SPDX-License-Identifier: MIT
 *
 * `shufctl status`: prints a daemon's device, load and memory, or a line for each daemon of the
 * machine.
 */
#include "connect.h"
#include "error.h"
#include "exit.h"
#include "json.h"
#include "socket.h"
#include "units.h"
#include "user.h"
#include "verb_options.h"
#include "verbs.h"

#include <dirent.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sysexits.h>
#include <unistd.h>

/* ---- Sockets that systemd should have made ---- */

/* A file can be missing: if a daemon fails to start several times, systemd stops its socket and
 * removes the file. */

/* shufd@NAME.socket makes NAME.sock, and shufd.socket makes shufd.sock. */
static bool find_path(const char *unit, struct sockaddr_un *address)
{
    char name[64];
    const char *at = strchr(unit, '@');
    if (sscanf(at ? at + 1 : unit, "%63[^.]", name) != 1 || strncmp(unit, "shufd", 5) != 0)
        return false;
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    return snprintf(address->sun_path, sizeof address->sun_path, "%s/%s.sock",
                    shuf__socket_directory(), name) < (int)sizeof address->sun_path;
}

static bool has_path(const struct sockaddr_un *addresses, size_t count, const char *path)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(addresses[i].sun_path, path) == 0)
            return true;
    return false;
}

static size_t add_of_folder(size_t folder, struct sockaddr_un *addresses, size_t count, size_t most)
{
    char path[SHUF__UNIT_PATH];
    const struct dirent *entry;
    shuf__unit_path(path, folder, "shufd.target.wants");
    DIR *directory = opendir(path);
    while (directory && count < most && (entry = readdir(directory)) != NULL)
        if (strstr(entry->d_name, ".socket") && !shuf__unit_is_masked(entry->d_name) &&
            find_path(entry->d_name, &addresses[count]) &&
            !has_path(addresses, count, addresses[count].sun_path))
            count++;
    if (directory)
        closedir(directory);
    return count;
}

/* Sockets outside /run/shufd have no units, except in tests. */
static bool have_units(void)
{
    return getenv("SHUFD_UNITS") || strcmp(shuf__socket_directory(), SHUF__SOCKET_DIRECTORY) == 0;
}

/* Without an enabled target, an operator may run single sockets. */
static size_t add_wanted_sockets(struct sockaddr_un *addresses, size_t count, size_t most)
{
    if (!have_units() || !shuf__units_are_enabled())
        return count;
    for (size_t i = 0; i < SHUF__UNIT_FOLDERS; i++)
        count = add_of_folder(i, addresses, count, most);
    return count;
}

/* ---- The daemons ---- */

static bool has_own_memory(const shuf_daemon *d)
{
    return d->memory_used != d->host_used || d->memory_limit != d->host_limit;
}

static void print_budget(const char *key, uint64_t used, uint64_t limit)
{
    char text[SHUF__UNITS_TEXT], most[SHUF__UNITS_TEXT];
    printf("%-11s %s of %s\n", key, shuf__units_memory(text, used),
           shuf__units_memory(most, limit));
}

static void print_idle(const shuf_daemon *d)
{
    print_budget("idle", d->host_idle, d->host_idle_limit);
    if (has_own_memory(d))
        print_budget("idle on GPU", d->device_idle, d->device_idle_limit);
}

static void print_results(const shuf_daemon *d)
{
    printf("results     %" PRIu64 " computed, %" PRIu64 " hit%s, %" PRIu64 " joined, %" PRIu64
           " evicted\n",
           d->computed, d->hits, shuf__plural(d->hits), d->joined, d->evicted);
    if (has_own_memory(d))
        printf("places      %" PRIu64 " computed by the host, %" PRIu64 " by the GPU\n",
               d->computed_on_host, d->computed - d->computed_on_host);
    printf("leases      %" PRIu64 "\n", d->leases);
    printf("blocks      %" PRIu64 ", %" PRIu64 " pending free, %" PRIu64 " filled by clients\n",
           d->blocks, d->pending_free, d->buffers);
    print_idle(d);
    if (d->copies_host)
        printf("memfd       refused, so values are copied: %s\n", d->lending_fault);
    if (d->log_dropped > 0)
        printf("log         %" PRIu64 " line%s dropped\n", d->log_dropped,
               d->log_dropped == 1 ? "" : "s");
}

/* Prints the memory that a user's processes have mapped without a lease. */
static void print_mapped(const shuf_user *u)
{
    char bytes[SHUF__UNITS_TEXT];
    if (u->mapped == 0)
        return;
    printf("            %s of it mapped without a lease", shuf__units_memory(bytes, u->mapped));
    if (u->mapped_pid > 0)
        printf(", most by process %" PRIu64, u->mapped_pid);
    printf(": free after its next call or its end\n");
}

static void print_users(const shuf_daemon *d)
{
    char name[SHUF__USER_TEXT], bytes[SHUF__UNITS_TEXT], idle[SHUF__UNITS_TEXT];
    for (unsigned i = 0; i < d->users; i++) {
        const shuf_user *u = &d->user[i];
        printf("user        %s (%" PRIu32 "): clients %" PRIu64 ", leases %" PRIu64
               ", blocks %" PRIu64 ", %s, %s of it idle\n",
               shuf__user_text(name, u->uid), u->uid, u->clients, u->leases, u->blocks,
               shuf__units_memory(bytes, u->bytes), shuf__units_memory(idle, u->idle));
        print_mapped(u);
    }
    if (d->other_users > 0)
        printf("            and %" PRIu64 " user%s with less memory\n", d->other_users,
               shuf__plural(d->other_users));
}

static void print_status(const shuf *handle, const shuf_daemon *d)
{
    char up[SHUF__UNITS_TEXT];
    printf("daemon      %s, pid %" PRIu64 ", on %s\n", d->version, d->pid, shuf_socket(handle));
    printf("backend     %s, %s\n", d->backend, d->device);
    printf("device id   %s\n", d->device_id);
    printf("config      %s\n", d->configuration[0] ? d->configuration : "no file");
    printf("up          %s\n", shuf__units_time(up, d->uptime_ms * 1000000));
    printf("clients     %" PRIu64 " of %" PRIu64 "\n", d->clients, d->client_limit);
    printf("queue       %" PRIu64 " of %" PRIu64 "\n", d->queued, d->queue_limit);
    printf("served      %" PRIu64 "\n", d->served);
    print_budget("memory", d->memory_used, d->memory_limit);
    if (has_own_memory(d))
        print_budget("host memory", d->host_used, d->host_limit);
    print_results(d);
    if (d->metrics_fault[0])
        printf("fault       %s; not published there\n", d->metrics_fault);
    if (d->reload_fault[0])
        printf("fault       %s\n", d->reload_fault);
    if (d->gpu_fault[0])
        printf("fault       the GPU is not used: %s\n", d->gpu_fault);
    print_users(d);
}

static void add_users(json_t *object, const shuf_daemon *d)
{
    json_t *users = json_array();
    for (unsigned i = 0; i < d->users; i++) {
        const shuf_user *u = &d->user[i];
        json_t *user = json_object();
        shuf__json_user(user, u->uid);
        shuf__json_integer(user, "clients", u->clients);
        shuf__json_integer(user, "leases", u->leases);
        shuf__json_integer(user, "blocks", u->blocks);
        shuf__json_integer(user, "bytes", u->bytes);
        shuf__json_integer(user, "idle_bytes", u->idle);
        shuf__json_integer(user, "mapped_bytes", u->mapped);
        if (u->mapped_pid > 0)
            shuf__json_integer(user, "mapped_pid", u->mapped_pid);
        else
            json_object_set_new(user, "mapped_pid", json_null());
        json_array_append_new(users, user);
    }
    json_object_set_new(object, "users", users);
}

/* Results, their memory and the leases on them. */
static void add_results(json_t *object, const shuf_daemon *d)
{
    const struct {
        const char *key;
        uint64_t value;
    } rows[] = {
        {"memory_used", d->memory_used},
        {"memory_limit", d->memory_limit},
        {"host_used", d->host_used},
        {"host_limit", d->host_limit},
        {"blocks", d->blocks},
        {"host_idle", d->host_idle},
        {"device_idle", d->device_idle},
        {"host_idle_limit", d->host_idle_limit},
        {"device_idle_limit", d->device_idle_limit},
        {"pending_free", d->pending_free},
        {"buffers", d->buffers},
        {"leases", d->leases},
        {"hits", d->hits},
        {"joined", d->joined},
        {"computed", d->computed},
        {"computed_on_host", d->computed_on_host},
        {"evicted", d->evicted},
        {"log_dropped", d->log_dropped},
        {"other_users", d->other_users},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        shuf__json_integer(object, rows[i].key, rows[i].value);
    json_object_set_new(object, "copies_host", json_boolean(d->copies_host));
    shuf__json_text(object, "metrics", d->metrics);
    shuf__json_text(object, "lending_fault", d->lending_fault);
    shuf__json_text(object, "metrics_fault", d->metrics_fault);
    shuf__json_text(object, "reload_fault", d->reload_fault);
    shuf__json_text(object, "gpu_fault", d->gpu_fault);
    shuf__json_text(object, "configuration", d->configuration);
    add_users(object, d);
}

static json_t *status_to_json(const shuf *handle, const shuf_daemon *d)
{
    json_t *object = json_object();
    shuf__json_text(object, "daemon", d->version);
    shuf__json_integer(object, "pid", d->pid);
    shuf__json_integer(object, "pid_namespace", d->pid_namespace);
    shuf__json_text(object, "socket", shuf_socket(handle));
    shuf__json_text(object, "backend", d->backend);
    shuf__json_text(object, "device", d->device);
    shuf__json_text(object, "device_id", d->device_id);
    json_object_set_new(object, "uptime_seconds", json_real((double)d->uptime_ms / 1e3));
    shuf__json_integer(object, "clients", d->clients);
    shuf__json_integer(object, "client_limit", d->client_limit);
    shuf__json_integer(object, "queued", d->queued);
    shuf__json_integer(object, "queue_limit", d->queue_limit);
    shuf__json_integer(object, "served", d->served);
    add_results(object, d);
    return object;
}

static int show_status(shuf *handle, const struct shuf__daemon_options *options)
{
    shuf_daemon daemon;
    shuf_status status = shuf_daemon_status(handle, &daemon);
    if (status != SHUF_OK)
        return shuf__fail_call(handle, status, options);
    if (options->json)
        shuf__json_print(status_to_json(handle, &daemon), stdout);
    else
        print_status(handle, &daemon);
    return EX_OK;
}

static int show_one(const struct shuf__daemon_options *options)
{
    shuf *handle;
    int code = shuf__connect_or_fail(&handle, options);
    if (code == EX_OK)
        code = show_status(handle, options);
    shuf_close(handle);
    return code;
}

/* ---- All daemons of the machine ---- */

enum { MOST_DAEMONS = 256 };

struct listing {
    json_t *daemons; /* NULL: a table */
    bool failed;     /* a daemon did not answer */
    int code;        /* of the first daemon that did not */
};

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void print_row(const char *socket, const shuf_daemon *d)
{
    char used[SHUF__UNITS_TEXT], limit[SHUF__UNITS_TEXT], up[SHUF__UNITS_TEXT];
    printf("%-45s %-24.24s %7" PRIu64 " %5" PRIu64 " %8" PRIu64 " %9s of %-9s %s\n",
           file_name(socket), d->device, d->clients, d->queued, d->served,
           shuf__units_memory(used, d->memory_used), shuf__units_memory(limit, d->memory_limit),
           shuf__units_time(up, d->uptime_ms * 1000000));
}

/* The status of one daemon. A thread of its own requests it, because a daemon that starts or hangs
 * takes seconds to answer. */
struct asked {
    const struct shuf__daemon_options *options; /* with the wait */
    const char *socket;
    pthread_t thread;
    bool has_thread;
    shuf *handle;
    shuf_status status;
    shuf_daemon daemon; /* if status is SHUF_OK */
};

static void *ask(void *context)
{
    struct asked *asked = context;
    struct shuf__daemon_options options = *asked->options;
    options.socket = asked->socket;
    asked->status = shuf__connect_silently(&asked->handle, &options);
    if (asked->status == SHUF_OK)
        asked->status = shuf_daemon_status(asked->handle, &asked->daemon);
    return NULL;
}

static void ask_all(struct asked *asked, const struct sockaddr_un *sockets, size_t count,
                    const struct shuf__daemon_options *options)
{
    for (size_t i = 0; i < count; i++) {
        asked[i].options = options;
        asked[i].socket = sockets[i].sun_path;
        asked[i].has_thread = pthread_create(&asked[i].thread, NULL, ask, &asked[i]) == 0;
    }
    for (size_t i = 0; i < count; i++)
        if (asked[i].has_thread)
            pthread_join(asked[i].thread, NULL);
        else
            ask(&asked[i]);
}

static void print_failure(const struct asked *asked)
{
    const char *text = shuf_message(asked->handle);
    printf("%-45s no answer: %.*s\n", file_name(asked->socket), shuf__fault_length(text), text);
}

static void add_failure(struct listing *listing, const struct asked *asked)
{
    if (!listing->failed)
        listing->code = shuf__exit_code(asked->status);
    listing->failed = true;
    if (!listing->daemons) {
        print_failure(asked);
        return;
    }
    json_t *object = json_object();
    shuf__json_text(object, "socket", asked->socket);
    shuf__json_text(object, "error", shuf_message(asked->handle));
    json_array_append_new(listing->daemons, object);
}

static void list_daemon(struct listing *listing, const struct asked *asked)
{
    if (asked->status != SHUF_OK)
        add_failure(listing, asked);
    else if (listing->daemons)
        json_array_append_new(listing->daemons, status_to_json(asked->handle, &asked->daemon));
    else
        print_row(asked->socket, &asked->daemon);
}

static int list_daemons(const struct sockaddr_un *sockets, size_t count,
                        const struct shuf__daemon_options *options)
{
    const bool json = options->json;
    static struct asked asked[MOST_DAEMONS];
    struct listing listing = {.daemons = json ? json_array() : NULL, .code = EX_OK};
    ask_all(asked, sockets, count, options);
    if (!json)
        printf("%-45s %-24s %7s %5s %8s %-22s %s\n", "SOCKET", "DEVICE", "CLIENTS", "QUEUE",
               "SERVED", "   MEMORY", "UP");
    for (size_t i = 0; i < count; i++) {
        list_daemon(&listing, &asked[i]);
        shuf_close(asked[i].handle);
    }
    if (json) {
        json_t *object = json_object();
        json_object_set_new(object, "daemons", listing.daemons);
        shuf__json_print(object, stdout);
    }
    return listing.code;
}

/* Lists the user's own daemon and those of the machine. If the machine has any socket of the units,
 * a wanted unit without a socket has failed, and is listed too. */
static size_t find_daemons(struct sockaddr_un sockets[MOST_DAEMONS])
{
    struct sockaddr_un own;
    struct shuf__error ignored;
    size_t count = shuf__socket_list("", sockets, MOST_DAEMONS - 1);
    if (count > 0)
        count = add_wanted_sockets(sockets, count, MOST_DAEMONS - 1);
    if (shuf__socket_address(NULL, SHUF__SOCKET_CONNECT, &own, &ignored) != SHUF_OK ||
        access(own.sun_path, F_OK) != 0)
        return count;
    for (size_t i = 0; i < count; i++)
        if (strcmp(sockets[i].sun_path, own.sun_path) == 0)
            return count;
    sockets[count++] = own;
    return count;
}

static bool names_socket(const struct shuf__daemon_options *options)
{
    const char *variable = getenv("SHUFD_SOCKET");
    return options->socket || (variable && *variable);
}

int shuf__verb_status(int argc, char **argv)
{
    static struct sockaddr_un sockets[MOST_DAEMONS];
    struct shuf__daemon_options options;
    shuf__daemon_options(argc, argv,
                         "Prints the daemon's device, load and memory. Without --socket and "
                         "SHUFD_SOCKET: a line for each daemon of the machine, if there are "
                         "several; with --json an object with the list of them.",
                         &options);
    const size_t count = names_socket(&options) ? 0 : find_daemons(sockets);
    if (count > 1 || (count == 1 && options.json))
        return list_daemons(sockets, count, &options);
    return show_one(&options);
}
