/* SPDX-License-Identifier: MIT
 *
 * See server.h. It ends in three steps: a drain, which answers what was accepted;
 * by force, which cancels it, when asked twice or too slow; and out of patience with
 * a device that does not even stop.
 */
#include "server.h"

#include "check.h"
#include "net/session.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sysexits.h>
#include <unistd.h>

enum {
    ACCEPTS_PER_TURN = 64,
    ACCEPT_AGAIN_MS = 100,
    RESERVED_DESCRIPTORS = 64, /* for the device's driver, the log and the like */
    DESCRIPTORS_PER_CLIENT = 3,
    DEVICE_FAILED_MS = 1000, /* for the last answers of a daemon whose device is gone */
    FORCED_END_MS = 5000,    /* for the running job to notice that it is cancelled */
};

static const struct {
    int number;
    const char *name;
} signals[SHUF__SIGNALS] = {{SIGTERM, "SIGTERM"}, {SIGINT, "SIGINT"}, {SIGHUP, "SIGHUP"}};

/* ---- the end ---- */

static void close_handle(void *handle)
{
    uv_handle_t *h = handle;
    if (!uv_is_closing(h))
        uv_close(h, NULL);
}

static void close_handles(struct shuf__server *server)
{
    close_handle(&server->accept);
    close_handle(&server->accept_again);
    close_handle(&server->deadline);
    close_handle(&server->allocations.look);
    close_handle(&server->results.trim);
    close_handle(&server->spin.idle);
    close_handle(&server->send);
    for (int i = 0; i < SHUF__SIGNALS; i++)
        close_handle(&server->signals[i]);
}

/* Ends the loop once nobody is connected and nothing is under way. */
static void settle(struct shuf__server *server)
{
    if (!server->draining || server->ended || !LIST_EMPTY(&server->sessions) ||
        !shuf__engine_is_idle(server->engine))
        return;
    shuf__cache_clear(&server->results);
    shuf__allocations_abandon(&server->allocations);
    if (!shuf__engine_is_idle(server->engine)) /* on_idle goes on when they are freed */
        return;
    server->ended = true;
    close_handles(server);
    shuf__engine_stop(server->engine);
}

static void on_idle(void *context)
{
    settle(context);
}

void shuf__server_forget(struct shuf__server *server, struct shuf__session *session)
{
    LIST_REMOVE(session, link);
    server->clients--;
    settle(server);
}

/* Calls `end` for each session, any of which may leave the list. */
static void for_each_session(struct shuf__server *server, void (*end)(struct shuf__session *))
{
    struct shuf__session *session = LIST_FIRST(&server->sessions);
    while (session) {
        struct shuf__session *next = LIST_NEXT(session, link);
        end(session);
        session = next;
    }
}

static void on_patience_lost(uv_timer_t *timer)
{
    struct shuf__server *server = timer->data;
    shuf__log(server->log, SHUF__LOG_ERROR, "the device does not stop; leaving without it");
    shuf__listener_unlock(&server->listener); /* nobody else will remove it */
    _exit(EX_SOFTWARE);
}

/* The first cause counts: it is the last line of the log. */
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
    shuf__log(server->log, SHUF__LOG_WARNING, "%s: cancelling the work of %" PRIu64 " client%s",
              why, server->clients, shuf__plural(server->clients));
    end_with(server, EX_TEMPFAIL, "%s, %" PRIu64 " client%s cut off", why, server->clients,
             shuf__plural(server->clients));
    uv_timer_start(&server->deadline, on_patience_lost, FORCED_END_MS, 0);
    for_each_session(server, shuf__session_close);
}

static void on_drain_timeout(uv_timer_t *timer)
{
    force(timer->data, "drain_timeout_ms is over");
}

static void drain(struct shuf__server *server, uint64_t timeout_ms)
{
    server->draining = true;
    uv_poll_stop(&server->accept);
    uv_timer_stop(&server->accept_again);
    shuf__listener_close(&server->listener);
    uv_timer_start(&server->deadline, on_drain_timeout, timeout_ms, 0);
    for_each_session(server, shuf__session_drain);
    settle(server);
}

static const char *name_of(int number)
{
    for (int i = 0; i < SHUF__SIGNALS; i++)
        if (signals[i].number == number)
            return signals[i].name;
    return "signal";
}

static void on_signal(uv_signal_t *handle, int number)
{
    struct shuf__server *server = handle->data;
    const char *name = name_of(number);
    if (server->draining) {
        force(server, name);
        return;
    }
    uint64_t jobs = shuf__engine_queued(server->engine);
    shuf__log(server->log, SHUF__LOG_INFO, "%s: draining, %" PRIu64 " client%s, %" PRIu64 " job%s",
              name, server->clients, shuf__plural(server->clients), jobs, shuf__plural(jobs));
    drain(server, server->config->drain_timeout_ms);
}

void shuf__server_device_failed(struct shuf__server *server, const struct shuf__error *error)
{
    if (server->exit_code == EX_OK)
        shuf__log(server->log, SHUF__LOG_ERROR, "the device failed, ending: %s", error->text);
    end_with(server, EX_IOERR, "the device failed: %s", error->text);
    if (!server->draining)
        drain(server, DEVICE_FAILED_MS);
}

/* ---- accepting ---- */

/* A fresh socket has room for one reply, so this never waits. What the client has
 * said by now is read, or it would see a reset instead of the end. */
static void refuse(struct shuf__server *server, int fd)
{
    uint8_t bytes[512];
    char text[SHUF__ERROR_TEXT];
    struct shuf__error error;
    Shuf__Reply reply = SHUF__REPLY__INIT;
    shuf__fail(&error, SHUF_BUSY,
               "clients %" PRIu64 ": the most that may be connected; try again later",
               server->clients_limit);
    memcpy(text, error.text, sizeof text);
    reply.status = SHUF_BUSY;
    reply.message = text;
    size_t size = shuf__message_pack(&reply.base, bytes, sizeof bytes);
    assert(size > 0);
    if (send(fd, bytes, size, MSG_NOSIGNAL) == (ssize_t)size) {
        shutdown(fd, SHUT_WR);
        while (recv(fd, bytes, sizeof bytes, MSG_TRUNC) == sizeof bytes)
            continue;
    }
    close(fd);
    shuf__log(server->log, SHUF__LOG_DEBUG, "client refused: %s", error.text);
}

static void on_connection(uv_poll_t *poll, int status, int events);

static void accept_again(uv_timer_t *timer)
{
    struct shuf__server *server = timer->data;
    uv_poll_start(&server->accept, UV_READABLE, on_connection);
}

/* Without descriptors or memory the loop would spin on a connection that it
 * cannot take; a little later some client may have left. */
static void pause_accepting(struct shuf__server *server)
{
    shuf__log(server->log, SHUF__LOG_WARNING, "accept: %s; trying again in %d ms", strerror(errno),
              ACCEPT_AGAIN_MS);
    uv_poll_stop(&server->accept);
    uv_timer_start(&server->accept_again, accept_again, ACCEPT_AGAIN_MS, 0);
}

static void on_connection(uv_poll_t *poll, int status, int events)
{
    struct shuf__server *server = poll->data;
    (void)status; /* accept4 tells what is wrong */
    (void)events;
    for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
        int fd = accept4(server->listener.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0 && errno == EAGAIN)
            return;
        if (fd < 0 && errno != ECONNABORTED && errno != EINTR) {
            pause_accepting(server);
            return;
        }
        if (fd >= 0 && server->clients >= server->clients_limit)
            refuse(server, fd);
        else if (fd >= 0)
            shuf__session_open(server, fd);
    }
}

/* ---- the start ---- */

/* Status has something to tell from the first client on. */
static void measure(struct shuf__server *server)
{
    struct shuf__error error;
    const struct shuf__backend *backend = shuf__engine_backend(server->engine);
    for (int kind = 0; kind < SHUF__MEMORY_KINDS; kind++)
        if (backend->ops->makes[kind] &&
            shuf__allocations_measure(&server->allocations, (enum shuf__memory)kind, &error))
            shuf__log(server->log, SHUF__LOG_WARNING, "%s", error.text);
}

static void start_accepting(struct shuf__server *server)
{
    uv_poll_start(&server->accept, UV_READABLE, on_connection);
    shuf__log(server->log, SHUF__LOG_INFO, "listening on %s", server->listener.address.sun_path);
}

static uint64_t open_files(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0)
        return RESERVED_DESCRIPTORS + DESCRIPTORS_PER_CLIENT;
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files); /* where it fails, the old limit counts */
    getrlimit(RLIMIT_NOFILE, &files);
    return (uint64_t)files.rlim_cur;
}

/* A client may have a socket, a process to be watched and a descriptor on its way; what is then
 * left is for blocks, but for as many as there are clients. */
static void share_descriptors(struct shuf__server *server)
{
    uint64_t files = open_files(), wanted = server->config->clients;
    uint64_t room = files > RESERVED_DESCRIPTORS ? files - RESERVED_DESCRIPTORS : 0;
    uint64_t most = room / (DESCRIPTORS_PER_CLIENT + 1);
    server->clients_limit = wanted < most ? wanted : most > 1 ? most : 1;
    uint64_t theirs = DESCRIPTORS_PER_CLIENT * server->clients_limit;
    server->allocations.most = room > theirs ? room - theirs : 1;
    if (server->clients_limit < wanted)
        shuf__log(server->log, SHUF__LOG_WARNING,
                  "clients %" PRIu64 ": only %" PRIu64 " fit the limit of open files", wanted,
                  server->clients_limit);
}

static void on_prepare(uv_prepare_t *send)
{
    shuf__sessions_send(send->data);
}

static void init_handles(struct shuf__server *server)
{
    uv_prepare_init(&server->loop, &server->send);
    uv_prepare_start(&server->send, on_prepare);
    server->send.data = server;
    uv_timer_init(&server->loop, &server->accept_again);
    uv_timer_init(&server->loop, &server->deadline);
    server->accept.data = server->accept_again.data = server->deadline.data = server;
    shuf__allocations_init(&server->allocations, &server->loop);
    shuf__cache_init(&server->results, &server->loop);
    shuf__spin_init(&server->spin, &server->loop, server->config->spin_us);
    for (int i = 0; i < SHUF__SIGNALS; i++)
        server->signals[i].data = server;
}

/* What is ignored from the start, as by nohup, stays so. */
static int listen_for(uv_signal_t *handle, int number)
{
    struct sigaction action;
    if (number == SIGHUP && sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN)
        return 0;
    return uv_signal_start(handle, on_signal, number);
}

/* Whatever fails here is the system's lack of descriptors or memory. */
static int start_handles(struct shuf__server *server)
{
    int result;
    if ((result = uv_poll_init(&server->loop, &server->accept, server->listener.fd)) != 0)
        return result;
    for (int i = 0; i < SHUF__SIGNALS; i++)
        if ((result = uv_signal_init(&server->loop, &server->signals[i])) != 0)
            return result;
    return 0;
}

/* Only when the device is open: until then the loop does not run, and a signal must end a
 * process whose device hangs. */
static int start_signals(struct shuf__server *server)
{
    int result = 0;
    for (int i = 0; i < SHUF__SIGNALS && result == 0; i++)
        result = listen_for(&server->signals[i], signals[i].number);
    return result;
}

static shuf_status start_engine(struct shuf__server *server, struct shuf__error *error)
{
    const struct shuf__config *config = server->config;
    struct shuf__engine_options options = {
        .backend = config->backend,
        .threads = (unsigned)config->threads,
        .queue = config->queue,
        .idle = on_idle,
        .context = server,
    };
    error->text[0] = '\0';
    if (shuf__engine_start(&server->engine, &server->loop, &options, error))
        return error->status;
    server->allocations.engine = server->engine;
    const struct shuf__backend *backend = shuf__engine_backend(server->engine);
    if (strcmp(config->backend, "auto") == 0 && error->text[0])
        shuf__log(server->log, SHUF__LOG_INFO, "passed over: %s", error->text);
    shuf__log(server->log, SHUF__LOG_INFO, "backend %s: %s (%s)", backend->ops->name,
              backend->device, backend->device_id);
    return SHUF_OK;
}

static int fail(struct shuf__server *server, int exit_code, const char *text)
{
    shuf__log(server->log, SHUF__LOG_ERROR, "%s", text);
    return exit_code;
}

/* Acquires in order; the exit code, EX_OK when all stands. */
static int start(struct shuf__server *server)
{
    struct shuf__error error;
    const struct shuf__config *config = server->config;
    if (shuf__listener_open(&server->listener, config->socket, (mode_t)config->socket_mode,
                            config->socket_group, &error))
        return fail(server, shuf__exit_of_socket(error.status), error.text);
    init_handles(server);
    int result = start_handles(server);
    if (result)
        return fail(server, EX_OSERR, uv_strerror(result));
    if (start_engine(server, &error))
        return fail(server, shuf__exit_of_backend(config, error.status), error.text);
    if ((result = start_signals(server)) != 0) {
        shuf__engine_stop(server->engine);
        return fail(server, EX_OSERR, uv_strerror(result));
    }
    share_descriptors(server);
    uv_update_time(&server->loop);
    server->start_ms = uv_now(&server->loop);
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
    if (server->exit_code == EX_OK)
        shuf__log(server->log, SHUF__LOG_INFO, "ended, %" PRIu64 " result%s served", server->served,
                  shuf__plural(server->served));
    else
        shuf__log(server->log, SHUF__LOG_ERROR, "ended before its time: %s", server->cause);
}

int shuf__server_run(const struct shuf__config *config, const struct shuf__log *log)
{
    struct shuf__server *server = calloc(1, sizeof *server);
    if (!server || uv_loop_init(&server->loop) != 0) {
        shuf__log(log, SHUF__LOG_ERROR, "no memory or descriptors to start with");
        free(server);
        return EX_OSERR;
    }
    server->config = config;
    server->log = log;
    server->allocations.budgets[SHUF__POOL_HOST].configured = config->host_memory;
    server->allocations.budgets[SHUF__POOL_DEVICE].configured = config->device_memory;
    server->results.allocations = &server->allocations;
    server->results.keep_ms = config->cache_ms;
    TAILQ_INIT(&server->leases.all);
    LIST_INIT(&server->sessions);
    LIST_INIT(&server->detached);
    TAILQ_INIT(&server->replying);
    int code = start(server);
    if (code != EX_OK)
        uv_walk(&server->loop, close_every_handle, NULL);
    uv_run(&server->loop, UV_RUN_DEFAULT);
    int busy = uv_loop_close(&server->loop);
    assert(busy == 0);
    (void)busy;
    shuf__listener_close(&server->listener);
    shuf__listener_unlock(&server->listener);
    if (code == EX_OK) {
        code = server->exit_code;
        log_end(server);
    }
    free(server);
    return code;
}
