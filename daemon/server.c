/* SPDX-License-Identifier: MIT
 *
 * See server.h. The daemon ends in up to three steps. First it drains: it answers the requests that
 * it has accepted. After a second signal or a timeout it cancels them. If the device does not stop
 * then, the daemon exits without waiting for it.
 */
#include "server.h"

#include "backend.h"
#include "check.h"
#include "config/config.h"
#include "end_guard.h"
#include "engine/engines.h"
#include "export/export.h"
#include "handlers/service.h"
#include "heartbeat.h"
#include "net/acceptor.h"
#include "net/drain.h"
#include "net/listener.h"
#include "net/peer_socket.h"
#include "process_limits.h"
#include "reload.h"
#include "service_manager.h"
#include "start_report.h"

#include <assert.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>
#include <uv.h>

/* ---- Signals until the end of the process ---- */

/* libuv restores the default action of a signal when the last watcher of the signal is closed. A
 * second SIGTERM would then kill the daemon before it removes its lock and writes its last line.
 * So watchers that do nothing stay until the process has ended. They need a loop of their own: the
 * daemon's loop ends before the process. */
static const int guarded[] = {SIGTERM, SIGINT, SIGHUP};

enum { GUARDED = sizeof guarded / sizeof *guarded };

static uv_loop_t guard_loop; /* never runs */
static uv_signal_t watchers[GUARDED];

static void ignore(uv_signal_t *watcher, int number)
{
    (void)watcher;
    (void)number;
}

/* Returns 0 or an error of libuv. */
static int guard_signals(void)
{
    int result = uv_loop_init(&guard_loop);
    for (size_t i = 0; i < GUARDED && result == 0; i++) {
        uv_signal_init(&guard_loop,
                       &watchers[i]); /* cannot fail again: its pipe exists with the loop */
        result = uv_signal_start(&watchers[i], ignore, guarded[i]);
    }
    return result;
}

/* ---- The server ---- */

enum { SIGNALS = 3 };

enum {
    DEVICE_FAILED_MS = 1000, /* for the last replies after the device has failed */
    FORCED_END_MS = 5000,    /* in which the running job notices that it is cancelled */
    STATUS_TEXT = 512,       /* one line for the service manager */
    END_MS = 10000,          /* in which the kernel frees the memory */
    SOCKET_MS = 2000,        /* between two looks at the file of the socket */
};

struct shuf__server {
    struct shuf__config *config;
    struct shuf__log *log;
    uv_loop_t loop;
    struct shuf__listener listener;
    struct shuf__acceptor acceptor;
    struct shuf__engine *engine;
    struct shuf__service service;
    struct shuf__heartbeat heartbeat;
    uv_timer_t socket_tick;              /* the next look at the file of the socket */
    char socket_fault[SHUF__ERROR_TEXT]; /* why no client finds the daemon, or "" */
    struct shuf__exports exports;
    struct shuf__drain drain;
    uv_timer_t deadline; /* first of the drain, then of the end */
    uv_prepare_t serve;  /* serves the sessions before the loop sleeps */
    uv_signal_t signals[SIGNALS];
    bool draining, forced, ended;
    _Atomic(const char *) held_by; /* what the end waits for; leave() runs on another thread */
    int exit_code;
    char cause[SHUF__ERROR_TEXT]; /* the reason of an exit code that is not EX_OK */
};

/* ---- The end ---- */

static void close_handle(void *handle)
{
    uv_handle_t *h = handle;
    if (!uv_is_closing(h))
        uv_close(h, NULL);
}

static void close_handles(struct shuf__server *server)
{
    shuf__acceptor_close(&server->acceptor);
    close_handle(&server->deadline);
    close_handle(&server->drain.tick);
    close_handle(&server->heartbeat.tick);
    close_handle(&server->socket_tick);
    shuf__service_close(&server->service);
    shuf__exports_stop(&server->exports);
    close_handle(&server->serve);
    for (int i = 0; i < SIGNALS; i++)
        close_handle(&server->signals[i]);
}

static void leave(void *context)
{
    struct shuf__server *server = context;
    const struct shuf__textfile *file = &server->exports.file;
    shuf__log_sum_up(server->log);
    if (server->ended && file->is_writing)
        shuf__log(server->log, SHUF__LOG_ERROR,
                  "metrics_file %s: the last write has not ended; leaving without it", file->path);
    else
        shuf__log(server->log, SHUF__LOG_ERROR, "%s; leaving without it",
                  atomic_load(&server->held_by));
    shuf__listener_unlock(&server->listener); /* else the file of the lock would stay */
    shuf__keyring_close(&server->service.keyring);
    shuf__log_stop(server->log);
    shuf__closing_finish();
    _exit(EX_SOFTWARE);
}

/* Ends the loop once no client is connected and no job is left. */
static void settle(struct shuf__server *server)
{
    if (!server->draining || server->ended || !LIST_EMPTY(&server->service.sessions.list) ||
        !shuf__engines_are_idle(server->engine) || server->service.allocations.worker_blocks > 0)
        return;
    shuf__leases_finish(&server->service.leases);
    shuf__pool_clear(&server->service.pool);
    shuf__allocations_abandon(&server->service.allocations);
    if (!shuf__engines_are_idle(server->engine)) /* on_engine_idle() continues after the frees */
        return;
    server->ended = true;
    shuf__end_guard_start(FORCED_END_MS, EX_SOFTWARE, leave, server);
    atomic_store(&server->held_by, "the thread that refuses connections does not end");
    close_handles(server);
    atomic_store(&server->held_by, "the device does not stop");
    shuf__engines_stop(server->engine);
    atomic_store(&server->held_by, "the event loop does not end");
}

static void on_engine_idle(void *context)
{
    settle(context);
}

static void on_session_closed(struct shuf__sessions *sessions)
{
    settle((struct shuf__server *)((char *)sessions -
                                   offsetof(struct shuf__server, service.sessions)));
}

static void on_workers_done(struct shuf__allocations *allocations)
{
    settle((struct shuf__server *)((char *)allocations -
                                   offsetof(struct shuf__server, service.allocations)));
}

static void on_shutdown_timeout(uv_timer_t *timer)
{
    leave(timer->data);
}

/* Sets the exit code and its cause. Only the first call has an effect. The last line of the log
 * names the cause. */
static void end_with(struct shuf__server *server, int exit_code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void end_with(struct shuf__server *server, int exit_code, const char *format, ...)
{
    va_list args;
    if (server->exit_code != EX_OK)
        return;
    server->exit_code = exit_code;
    va_start(args, format);
    vsnprintf(server->cause, sizeof server->cause, format, args);
    va_end(args);
}

static void force(struct shuf__server *server, const char *why)
{
    if (server->forced)
        return;
    server->forced = true;
    shuf__log(server->log, SHUF__LOG_WARNING, "%s: cutting off %" PRIu64 " client%s", why,
              server->service.sessions.count, shuf__plural(server->service.sessions.count));
    const bool is_working = shuf__engines_queued(server->engine) > 0; /* frees fail nobody */
    uv_timer_start(&server->deadline, on_shutdown_timeout, is_working ? FORCED_END_MS : END_MS, 0);
    const uint64_t unanswered = shuf__drain_force(&server->drain);
    if (unanswered > 0 || is_working) /* a reply that its client does not read is no failure */
        end_with(server, EX_TEMPFAIL, "%s, %" PRIu64 " client%s cut off", why, unanswered,
                 shuf__plural(unanswered));
}

static void on_drain_timeout(uv_timer_t *timer)
{
    force(timer->data, "the time to drain is over");
}

static void report_stopping(const struct shuf__server *server, uint64_t timeout_ms)
{
    char status[STATUS_TEXT];
    const uint64_t clients = server->service.sessions.count;
    const uint64_t jobs = shuf__engines_queued(server->engine);
    snprintf(status, sizeof status, "Draining, %" PRIu64 " client%s, %" PRIu64 " job%s", clients,
             shuf__plural(clients), jobs, shuf__plural(jobs));
    shuf__service_manager_stopping(status, timeout_ms + FORCED_END_MS + END_MS);
}

static void drain(struct shuf__server *server, uint64_t timeout_ms)
{
    server->draining = true;
    atomic_store(&server->held_by, "the device does not stop");
    report_stopping(server, timeout_ms);
    shuf__warm_stop(&server->service.warm);
    shuf__acceptor_stop(&server->acceptor);
    shuf__listener_close(&server->listener);
    uv_timer_start(&server->deadline, on_drain_timeout, timeout_ms, 0);
    shuf__drain_start(&server->drain, shuf__config_ms(server->config->drain_read_timeout));
    settle(server);
}

static void on_end_signal(uv_signal_t *handle, int number)
{
    struct shuf__server *server = handle->data;
    const char *name = number == SIGINT ? "SIGINT" : "SIGTERM";
    if (server->draining) {
        force(server, name);
        return;
    }
    uint64_t jobs = shuf__engines_queued(server->engine);
    shuf__log(server->log, SHUF__LOG_INFO, "%s: draining, %" PRIu64 " client%s, %" PRIu64 " job%s",
              name, server->service.sessions.count, shuf__plural(server->service.sessions.count),
              jobs, shuf__plural(jobs));
    drain(server, shuf__config_ms(server->config->drain_timeout));
}

/* Results on a failed device may be wrong. The service manager starts another daemon. */
static void on_device_failed(void *context, const struct shuf__error *error)
{
    struct shuf__server *server = context;
    if (server->exit_code == EX_OK)
        shuf__log(server->log, SHUF__LOG_ERROR, "the device failed, ending: %s", error->text);
    end_with(server, EX_IOERR, "the device failed: %s", error->text);
    if (!server->draining)
        drain(server, DEVICE_FAILED_MS);
}

/* ---- The file of the socket ---- */

/* Every 2 seconds the daemon looks whether the path of the socket still names it. If somebody has
 * removed or replaced the file, no client finds the daemon. The daemon then makes a new socket. It
 * cannot do so for a socket of the service manager, or if the path is in use: then it tells the
 * reason to the log and to the service manager. A poll also sees a directory that was removed and
 * made again, which inotify does not. */
static shuf_status make_socket_again(struct shuf__server *server, struct shuf__error *error)
{
    const struct shuf__config *config = server->config;
    struct shuf__listener *listener = &server->listener;
    if (listener->is_passed)
        return shuf__fail(error, SHUF_IO,
                          "socket %s: the daemon does not find its file, which was removed or "
                          "replaced; restart the unit of the socket, such as shufd.socket",
                          listener->address.sun_path);
    shuf__acceptor_stop(&server->acceptor);
    const shuf_status status = shuf__listener_open_again(listener, (mode_t)config->socket_mode,
                                                         config->socket_group, error);
    shuf__acceptor_start(&server->acceptor);
    return status;
}

static void report_ready(const struct shuf__server *server)
{
    shuf__report_ready(&server->listener, shuf__engine_backend(server->engine),
                       server->service.reload_fault, server->socket_fault);
}

static void set_socket_fault(struct shuf__server *server, const char *fault)
{
    snprintf(server->socket_fault, sizeof server->socket_fault, "%s", fault);
    report_ready(server);
}

static void on_socket_tick(uv_timer_t *tick)
{
    struct shuf__server *server = tick->data;
    struct shuf__error error;
    if (server->listener.fd < 0) /* the daemon drains */
        return;
    if (shuf__listener_is_at_path(&server->listener)) {
        if (server->socket_fault[0])
            set_socket_fault(server, "");
    } else if (make_socket_again(server, &error) == SHUF_OK) {
        shuf__log(server->log, SHUF__LOG_WARNING,
                  "socket %s: its file was removed or replaced; made a new one",
                  server->listener.address.sun_path);
        set_socket_fault(server, "");
    } else if (strcmp(server->socket_fault, error.text) != 0) {
        shuf__log(server->log, SHUF__LOG_ERROR, "no client finds this daemon: %s", error.text);
        set_socket_fault(server, error.text);
    }
}

/* ---- The start ---- */

/* Measures the memory at the start, so that the first Status already has the limits. */
static void measure(struct shuf__server *server)
{
    struct shuf__error error;
    struct shuf__backend *backend = shuf__engine_backend(server->engine);
    shuf__check_budgets(backend, server->config, server->log);
    shuf__check_file_leases(server->log);
    shuf__check_control_group(server->config, server->log);
    for (int kind = 0; kind < SHUF__MEMORY_KINDS; kind++)
        if (backend->ops->makes[kind] && shuf__allocations_measure(&server->service.allocations,
                                                                   (enum shuf__memory)kind, &error))
            shuf__log(server->log, SHUF__LOG_WARNING, "%s", error.text);
    shuf__warm_start(&server->service.warm);
}

static void start_accepting(struct shuf__server *server)
{
    shuf__acceptor_start(&server->acceptor);
    shuf__report_socket(&server->listener, server->config, server->log);
    shuf__exports_start(&server->exports, &server->service);
    report_ready(server);
    shuf__heartbeat_start(&server->heartbeat, server->engine);
    uv_timer_start(&server->socket_tick, on_socket_tick, SOCKET_MS, SOCKET_MS);
}

static void share_descriptors(struct shuf__server *server)
{
    const struct shuf__descriptors shares = shuf__descriptors_of(server->config, server->log);
    shuf__acceptor_set_limits(&server->acceptor, shares.clients, shares.of_clients, shares.closing,
                              server->config->user_clients);
    shuf__allocations_limit_count(&server->service.allocations, shares.blocks);
}

static void on_reload_signal(uv_signal_t *handle, int number)
{
    struct shuf__server *server = handle->data;
    struct shuf__error fault;
    (void)number;
    if (server->draining) /* a reload would tell the service manager that the daemon serves */
        return;
    shuf__service_manager_reloading();
    shuf__reload(server->config, &server->service, &server->listener, server->log, &fault);
    shuf__exports_configure(&server->exports);
    share_descriptors(server);
    measure(server);
    shuf__pool_hold_to_limits(&server->service.pool);
    snprintf(server->service.reload_fault, sizeof server->service.reload_fault, "%s", fault.text);
    report_ready(server);
}

static const struct {
    int number;
    uv_signal_cb handler;
} signals[SIGNALS] = {
    {SIGTERM, on_end_signal}, {SIGINT, on_end_signal}, {SIGHUP, on_reload_signal}};

static void on_prepare(uv_prepare_t *serve)
{
    struct shuf__server *server = serve->data;
    shuf__sessions_serve(&server->service.sessions);
}

static void init_handles(struct shuf__server *server)
{
    uv_prepare_init(&server->loop, &server->serve);
    uv_prepare_start(&server->serve, on_prepare);
    uv_timer_init(&server->loop, &server->deadline);
    shuf__heartbeat_init(&server->heartbeat, &server->loop);
    uv_timer_init(&server->loop, &server->socket_tick);
    server->serve.data = server->deadline.data = server->socket_tick.data = server;
    shuf__service_init(&server->service, &server->loop, server->config, server->log);
    shuf__drain_init(&server->drain, &server->service.sessions);
    server->service.sessions.closed = on_session_closed;
    server->service.allocations.workers_done = on_workers_done;
    for (int i = 0; i < SIGNALS; i++)
        server->signals[i].data = server;
}

static shuf_status fail_of_system(int result, struct shuf__error *error)
{
    return shuf__fail(error, SHUF_IO,
                      "cannot start: %s; expected higher limits of memory (ulimit -v), processes "
                      "(ulimit -u) and open files (ulimit -n)",
                      uv_strerror(result));
}

/* Fails only if there are no descriptors, no memory or no threads. */
static shuf_status start_handles(struct shuf__server *server, struct shuf__error *error)
{
    int result =
        shuf__acceptor_init(&server->acceptor, &server->service.sessions, &server->listener);
    for (int i = 0; i < SIGNALS && result == 0; i++)
        result = uv_signal_init(&server->loop, &server->signals[i]);
    return result == 0 ? SHUF_OK : fail_of_system(result, error);
}

/* Call after the device is open. Before, the loop does not run, and signals end the process. */
static shuf_status start_signals(struct shuf__server *server, struct shuf__error *error)
{
    int result = guard_signals();
    for (int i = 0; i < SIGNALS && result == 0; i++)
        result = uv_signal_start(&server->signals[i], signals[i].handler, signals[i].number);
    return result == 0 ? SHUF_OK : fail_of_system(result, error);
}

/* The backend cpu was chosen. On a machine with a loaded driver, somebody expects the GPU. */
static void report_unused_gpu(struct shuf__server *server, const struct shuf__error *error)
{
    const bool has_driver = access("/proc/driver/nvidia/version", F_OK) == 0;
    shuf__log(server->log, has_driver ? SHUF__LOG_WARNING : SHUF__LOG_INFO,
              "the GPU is not used: %s", error->text);
    if (has_driver)
        memcpy(server->service.gpu_fault, error->text, sizeof server->service.gpu_fault);
}

static shuf_status start_engine(struct shuf__server *server, struct shuf__error *error)
{
    const struct shuf__config *config = server->config;
    struct shuf__engine_options options = {
        .backend = config->backend,
        .threads = (unsigned)config->threads,
        .queue = config->queue,
        .idle = on_engine_idle,
        .device_failed = on_device_failed,
        .context = server,
    };
    error->text[0] = '\0';
    if (shuf__engines_start(&server->engine, &server->loop, &options,
                            config->host_results != SHUF__PLACE_DEVICE, error))
        return error->status;
    shuf__service_set_engine(&server->service, server->engine);
    const struct shuf__backend *backend = shuf__engine_backend(server->engine);
    if (strcmp(config->backend, "auto") == 0 && error->text[0])
        report_unused_gpu(server, error);
    shuf__log(server->log, SHUF__LOG_INFO, "backend %s: %s (%s)", backend->ops->name,
              backend->device, backend->device_id);
    return SHUF_OK;
}

static int fail_start(const struct shuf__server *server, int exit_code, struct shuf__error *error)
{
    return shuf__fail_start(server->config, server->log, server->listener.fd, exit_code, error);
}

/* Acquires all parts in order. Returns the exit code, EX_OK on success. */
static int start(struct shuf__server *server)
{
    struct shuf__error error;
    char origin[SHUF__CONFIG_ORIGIN];
    const struct shuf__config *config = server->config;
    shuf__log(server->log, SHUF__LOG_INFO, "%s", shuf__config_origin(config, origin));
    if (shuf__service_sharers(&error) == 0)
        return fail_start(server, EX_CONFIG, &error);
    if (shuf__listener_open(&server->listener, config->socket, (mode_t)config->socket_mode,
                            config->socket_group, &error))
        return fail_start(server, shuf__exit_of_socket(error.status), &error);
    if (error.text[0])
        shuf__log(server->log, SHUF__LOG_WARNING, "%s", error.text);
    init_handles(server);
    if (shuf__service_load_keys(&server->service, &error))
        return shuf__fail_start_of_keys(config, server->log, server->listener.fd, &error);
    if (start_handles(server, &error))
        return fail_start(server, EX_OSERR, &error);
    if (start_engine(server, &error))
        return fail_start(server, shuf__exit_of_backend(config, error.status), &error);
    if (start_signals(server, &error)) {
        shuf__engines_stop(server->engine);
        return fail_start(server, EX_OSERR, &error);
    }
    share_descriptors(server);
    shuf__service_started(&server->service, server->listener.address.sun_path,
                          server->listener.is_passed);
    measure(server);
    start_accepting(server);
    return EX_OK;
}

static void close_every_handle(uv_handle_t *handle, void *context)
{
    (void)context;
    close_handle(handle);
}

static void log_end(const struct shuf__server *server)
{
    shuf__log_sum_up(server->log);
    if (server->exit_code == EX_OK)
        shuf__log(server->log, SHUF__LOG_INFO,
                  "ended, %" PRIu64 " result%s served, %" PRIu64 " client%s cut off",
                  server->service.served, shuf__plural(server->service.served),
                  server->drain.unread, shuf__plural(server->drain.unread));
    else
        shuf__log(server->log, SHUF__LOG_ERROR, "terminated abnormally: %s", server->cause);
}

static int run(struct shuf__server *server)
{
    int code = start(server);
    if (code != EX_OK) {
        shuf__acceptor_close(&server->acceptor);
        uv_walk(&server->loop, close_every_handle, NULL);
    }
    uv_run(&server->loop, UV_RUN_DEFAULT);
    shuf__end_guard_forget(); /* the server is freed before the process has ended */
    int busy = uv_loop_close(&server->loop);
    assert(busy == 0);
    (void)busy;
    shuf__listener_close(&server->listener);
    shuf__listener_unlock(&server->listener);
    shuf__keyring_close(&server->service.keyring);
    if (code == EX_OK) {
        code = server->exit_code;
        log_end(server);
    }
    return code;
}

int shuf__server_run(struct shuf__config *config, struct shuf__log *log)
{
    int code = EX_OSERR;
    struct shuf__server *server = calloc(1, sizeof *server);
    const bool has_loop = server && uv_loop_init(&server->loop) == 0;
    if (has_loop && shuf__log_start(log)) {
        server->listener = (struct shuf__listener){.fd = -1, .lock.fd = -1};
        server->config = config;
        server->log = log;
        code = run(server);
    } else {
        shuf__log(
            log, SHUF__LOG_ERROR,
            "cannot start: no memory, threads or descriptors; expected higher limits of memory "
            "(ulimit -v), processes (ulimit -u) and open files (ulimit -n)");
        if (has_loop)
            uv_loop_close(&server->loop);
    }
    shuf__log_stop(log);
    free(server);
    return code;
}
