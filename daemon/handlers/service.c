/* SPDX-License-Identifier: MIT
 *
 * See service.h.
 */
#include "service.h"

#include "handlers.h"
#include "keys/keyring.h"
#include "net/drain.h"
#include "number.h"
#include "socket.h"
#include "units.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- The name of a daemon ---- */

void shuf__service_name_of(const char *socket, char name[SHUF__SERVICE_NAME])
{
    static const char suffix[] = ".sock";
    const char *slash = strrchr(socket, '/');
    snprintf(name, SHUF__SERVICE_NAME, "%s", slash ? slash + 1 : socket);
    const size_t length = strlen(name), cut = sizeof suffix - 1;
    if (length > cut && strcmp(name + length - cut, suffix) == 0)
        name[length - cut] = '\0';
}

void shuf__service_unit_of(const char *socket, const char *type, char unit[SHUF__SERVICE_UNIT])
{
    static const char directory[] = SHUF__SOCKET_DIRECTORY "/";
    char name[SHUF__SERVICE_NAME];
    shuf__service_name_of(socket, name);
    if (strcmp(name, "shufd") != 0 && strncmp(socket, directory, strlen(directory)) == 0)
        snprintf(unit, SHUF__SERVICE_UNIT, "shufd@%.108s.%.10s", name, type);
    else
        snprintf(unit, SHUF__SERVICE_UNIT, "shufd.%.10s", type);
}

bool shuf__service_name_expand(const char *text, const char *name, char *out, size_t size)
{
    size_t used = 0;
    for (; *text; text++) {
        const bool is_name = text[0] == '%' && text[1] == 'i';
        const char *part = is_name ? name : text;
        const size_t length = is_name ? strlen(name) : 1;
        if (used + length >= size) {
            out[0] = '\0';
            return false;
        }
        memcpy(out + used, part, length);
        used += length;
        text += is_name;
    }
    out[used] = '\0';
    return true;
}

/* ---- The service ---- */

enum { LOG_PAUSE_MS = 10000 }; /* between two lines about a shortage of memory */

static void init_sessions(struct shuf__service *service)
{
    struct shuf__sessions *sessions = &service->sessions;
    shuf__sessions_init(sessions, service->loop);
    sessions->log = service->log;
    sessions->process_watches = &service->process_watches;
    sessions->leases = &service->leases;
    sessions->allocations = &service->allocations;
    sessions->accounts = &service->allocations.accounts;
    sessions->stats = &service->stats;
    sessions->handle = shuf__dispatch;
    service->pool.slow_reader_bytes = shuf__slow_readers_bytes;
    service->pool.cut_off_reader = shuf__slow_readers_cut_off;
    service->pool.reader_context = sessions;
}

uint64_t shuf__service_sharers(struct shuf__error *error)
{
    uint64_t count = 1;
    const char *text = getenv("SHUFD_INSTANCES");
    if (!text || shuf__number_parse_in("SHUFD_INSTANCES", text, 1, 4096, &count, error) == SHUF_OK)
        return count;
    shuf__fail(error, SHUF_INVALID,
               "SHUFD_INSTANCES %.64s: expected the number of daemons on this machine, 1 to 4096; "
               "correct or unset the environment variable",
               *text ? text : "''");
    return 0;
}

static void log_given_back(struct shuf__service *service)
{
    char host[SHUF__UNITS_TEXT], device[SHUF__UNITS_TEXT];
    struct shuf__dropped *dropped = &service->unlogged;
    shuf__log(service->log, SHUF__LOG_INFO,
              "memory is short: gave back %" PRIu64 " unused result%s, %s of host memory, %s of "
              "device memory",
              dropped->results, shuf__plural(dropped->results),
              shuf__units_memory(host, dropped->bytes[SHUF__SIDE_HOST]),
              shuf__units_memory(device, dropped->bytes[SHUF__SIDE_DEVICE]));
    *dropped = (struct shuf__dropped){0};
    service->next_log_ms = uv_now(service->loop) + LOG_PAUSE_MS;
}

/* Logs at most one line in ten seconds. The next line has the sum of the time between. */
static void on_gave_back(struct shuf__shortage *shortage, const struct shuf__dropped *dropped)
{
    struct shuf__service *service =
        (struct shuf__service *)((char *)shortage - offsetof(struct shuf__service, shortage));
    service->unlogged.results += dropped->results;
    for (int side = 0; side < SHUF__SIDES; side++)
        service->unlogged.bytes[side] += dropped->bytes[side];
    if (uv_now(service->loop) >= service->next_log_ms)
        log_given_back(service);
}

static void on_warm(struct shuf__warm *warm, const struct shuf__allocation *allocation)
{
    const struct shuf__service *service =
        (struct shuf__service *)((char *)warm - offsetof(struct shuf__service, warm));
    char text[SHUF__UNITS_TEXT];
    shuf__log(service->log, SHUF__LOG_INFO, "%s: a block of %s is ready",
              shuf__memory_is_host(allocation->kind) ? "host_warm" : "device_warm",
              shuf__units_memory(text, allocation->bytes));
}

void shuf__service_init(struct shuf__service *service, uv_loop_t *loop,
                        const struct shuf__config *config, const struct shuf__log *log)
{
    struct shuf__error ignored; /* the start has checked it */
    service->config = config;
    service->log = log;
    service->loop = loop;
    service->allocations.budgets[SHUF__SIDE_HOST].sharers = shuf__service_sharers(&ignored);
    service->allocations.budgets[SHUF__SIDE_DEVICE].sharers = 1;
    shuf__allocations_init(&service->allocations, loop);
    service->pool.allocations = &service->allocations;
    shuf__pool_init(&service->pool, loop);
    service->shortage.gave_back = on_gave_back;
    shuf__shortage_init(&service->shortage, loop, &service->pool, config->root);
    service->warm.ready = on_warm;
    shuf__warm_init(&service->warm, loop, &service->pool, &service->shortage);
    shuf__keyring_init(&service->keyring);
    shuf__cache_init(&service->cache, &service->pool, &service->keyring);
    shuf__process_watches_init(&service->process_watches, loop, &service->allocations);
    shuf__leases_init(&service->leases, loop, &service->allocations);
    init_sessions(service);
    shuf__service_configure(service);
}

static void close_handle(void *handle)
{
    uv_handle_t *h = handle;
    if (!uv_is_closing(h))
        uv_close(h, NULL);
}

void shuf__service_close(struct shuf__service *service)
{
    close_handle(&service->allocations.sweep);
    close_handle(&service->allocations.sweep_on);
    close_handle(&service->pool.trim);
    close_handle(&service->warm.timer);
    close_handle(&service->leases.ending);
    shuf__sessions_close(&service->sessions);
    shuf__leases_free(&service->leases);
    shuf__shortage_close(&service->shortage);
    shuf__inode_watches_close(&service->allocations.watches);
}

void shuf__service_configure(struct shuf__service *service)
{
    const struct shuf__config *config = service->config;
    struct shuf__budget *host = &service->allocations.budgets[SHUF__SIDE_HOST],
                        *device = &service->allocations.budgets[SHUF__SIDE_DEVICE];
    service->allocations.config_file = config->file;
    service->allocations.starter = getenv("SHUFD_STARTER");
    service->allocations.has_option[SHUF__SIDE_HOST] =
        config->source.value[SHUF__CONFIG_host_memory] != NULL;
    service->allocations.has_option[SHUF__SIDE_DEVICE] =
        config->source.value[SHUF__CONFIG_device_memory] != NULL;
    host->configured = config->host_memory;
    host->configured_idle = config->host_cache;
    host->configured_warm = config->host_warm;
    device->configured = config->device_memory;
    device->configured_idle = config->device_cache;
    device->configured_warm = config->device_warm;
    service->allocations.accounts.memory_share = config->user_memory;
    service->allocations.has_user_option = config->source.value[SHUF__CONFIG_user_memory] != NULL;
    service->leases.limit = config->leases;
    service->leases.user_limit = config->user_leases;
    service->sessions.slow_ns = config->slow_request;
    service->sessions.configured = config->clients;
    service->sessions.frame_timeout_ms = shuf__config_ms(config->frame_timeout);
    shuf__spin_set(&service->sessions.spin, config->spin_time);
    shuf__pool_set_keep(&service->pool, shuf__config_ms(config->cache_time));
}

static const char *keys_directory(const struct shuf__config *config)
{
    return *config->keys ? config->keys : getenv("CREDENTIALS_DIRECTORY");
}

/* If $CREDENTIALS_DIRECTORY gives the directory, the error names this variable. */
static shuf_status load_keys(struct shuf__keyring *keyring, const struct shuf__config *config,
                             struct shuf__error *error)
{
    char text[SHUF__ERROR_TEXT];
    const shuf_status status = shuf__keyring_load(keyring, keys_directory(config), error);
    if (status == SHUF_OK || *config->keys)
        return status;
    memcpy(text, error->text, sizeof text);
    return shuf__fail(error, status, "$CREDENTIALS_DIRECTORY: %.480s", text);
}

shuf_status shuf__service_check_keys(const struct shuf__config *config, struct shuf__error *error)
{
    struct shuf__keyring keyring;
    if (!keys_directory(config))
        return SHUF_OK;
    shuf__keyring_init(&keyring);
    const shuf_status status = load_keys(&keyring, config, error);
    shuf__keyring_close(&keyring);
    return status;
}

/* If there is no directory, there are no keys, and no memory needs to be locked. */
shuf_status shuf__service_load_keys(struct shuf__service *service, struct shuf__error *error)
{
    const char *directory = keys_directory(service->config);
    if (!directory) {
        shuf__keyring_close(&service->keyring);
        return SHUF_OK;
    }
    if (load_keys(&service->keyring, service->config, error))
        return error->status;
    const unsigned count = service->keyring.set.count;
    shuf__log(service->log, SHUF__LOG_INFO, "%u named key%s from %s", count, shuf__plural(count),
              directory);
    return SHUF_OK;
}

/* The line of the log has the names of the keys, and never their bits. */
shuf_status shuf__service_reload_keys(struct shuf__service *service, struct shuf__error *error)
{
    char text[SHUF__KEY_CHANGES];
    const struct shuf__key_set before = service->keyring.set;
    if (shuf__service_load_keys(service, error)) {
        shuf__log(service->log, SHUF__LOG_ERROR, "reload: %s; no named key changes", error->text);
        return error->status;
    }
    const bool changed = *shuf__key_changes(&before, &service->keyring.set, text);
    if (changed || service->keyring.set.count > 0)
        shuf__log(service->log, SHUF__LOG_INFO, "reload: named keys: %s",
                  changed ? text : "none changed");
    return SHUF_OK;
}

void shuf__service_set_engine(struct shuf__service *service, struct shuf__engine *engine)
{
    const struct shuf__config *config = service->config;
    service->engine = engine;
    service->allocations.engine = engine;
    service->cache.engine = engine;
    service->sessions.engine = engine;
    shuf__placement_init(&service->placement, engine, config->host_results == SHUF__PLACE_HOST,
                         (unsigned)config->threads, config->root);
}

void shuf__service_started(struct shuf__service *service, const char *socket, bool is_passed)
{
    struct timespec now;
    shuf__service_name_of(socket, service->name);
    if (is_passed) {
        shuf__service_unit_of(socket, "service", service->unit);
        service->allocations.unit = service->unit;
    }
    clock_gettime(CLOCK_REALTIME, &now);
    service->start_seconds = (double)now.tv_sec + (double)now.tv_nsec / 1e9;
    uv_update_time(service->loop);
    service->start_ms = uv_now(service->loop);
}

bool shuf__session_is_privileged(const struct shuf__session *session)
{
    return shuf__uid_is_privileged(session->client.uid);
}
