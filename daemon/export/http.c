/* SPDX-License-Identifier: MIT
 *
 * See http.h. The thread of libmicrohttpd suspends each request, the loop makes its text, and
 * libmicrohttpd sends the text. A connection serves one request. Those of slow clients
 * are ended, so these cannot keep other clients out.
 */
#include "http.h"

#include "error.h"

#include <errno.h>
#include <string.h>

/* RestrictAddressFamilies= of the unit refuses the family. */
const char *shuf__remedy_of_port(int cause)
{
    if (cause == EADDRINUSE)
        return "; another program listens there, so choose another port";
    return cause == EAFNOSUPPORT && shuf__is_in_unit()
               ? "; its unit needs the drop-in metrics-port.conf, see shufd.service(8)"
               : "";
}

#ifdef SHUF_HAVE_MICROHTTPD

#include "handlers/metrics_text.h"

#include <microhttpd.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    CONNECTIONS = 32,              /* the maximum, for which the daemon reserves descriptors */
    CONNECTION_MEMORY = 16 * 1024, /* bytes: larger headers are refused */
    IDLE_SECONDS = 5,
    SWEEP_MS = 1000,
    PAUSE_MS = 50,  /* between two texts */
    MANY = 16,      /* connections, above which the oldest may end */
    LIFE_MS = 5000, /* of a connection */
};

static uint64_t now_ms(void)
{
    return uv_hrtime() / 1000000;
}

/* ---- Connections ---- */

/* Oldest first. One lasts at most LIFE_MS. If many are open, a new one replaces the oldest one
 * without a request. To end a connection, these functions shut its socket down; libmicrohttpd
 * closes it when it reads the end of the stream. All functions are safe to call from every thread.
 */
struct connections {
    uv_mutex_t lock; /* guards all fields */
    TAILQ_HEAD(, connection) list;
    unsigned count;
};

struct connection {
    int fd;
    uint64_t since_ms; /* time of its start, by uv_hrtime() */
    bool has_asked;
    TAILQ_ENTRY(connection) link;
};

/* Returns false if the system has no memory. */
static bool init_connections(struct connections *all)
{
    if (uv_mutex_init(&all->lock) != 0)
        return false;
    TAILQ_INIT(&all->list);
    return true;
}

static void destroy_connections(struct connections *all)
{
    uv_mutex_destroy(&all->lock);
}

static void end_oldest(struct connections *all)
{
    struct connection *connection;
    TAILQ_FOREACH (connection, &all->list, link)
        if (!connection->has_asked) {
            connection->has_asked = true; /* so it is not ended a second time */
            shutdown(connection->fd, SHUT_RDWR);
            return;
        }
}

/* Returns NULL if the system has no memory. Then the connection has no limit of time. */
static struct connection *add_connection(struct connections *all, int fd)
{
    struct connection *connection = calloc(1, sizeof *connection);
    uv_mutex_lock(&all->lock);
    if (connection) {
        connection->fd = fd;
        connection->since_ms = now_ms();
        if (++all->count > MANY)
            end_oldest(all);
        TAILQ_INSERT_TAIL(&all->list, connection, link);
    }
    uv_mutex_unlock(&all->lock);
    return connection;
}

/* NULL has no effect. */
static void remove_connection(struct connections *all, struct connection *connection)
{
    if (!connection)
        return;
    uv_mutex_lock(&all->lock);
    all->count--;
    TAILQ_REMOVE(&all->list, connection, link);
    uv_mutex_unlock(&all->lock);
    free(connection);
}

/* Call when a request is complete: a new connection does not replace this one. NULL has no effect.
 */
static void note_request(struct connections *all, struct connection *connection)
{
    if (!connection)
        return;
    uv_mutex_lock(&all->lock);
    connection->has_asked = true;
    uv_mutex_unlock(&all->lock);
}

/* Ends the connections that are too old. Returns false if there are no connections. */
static bool sweep_connections(struct connections *all)
{
    const struct connection *connection;
    const uint64_t now = now_ms();
    uv_mutex_lock(&all->lock);
    TAILQ_FOREACH (connection, &all->list, link)
        if (now - connection->since_ms >= LIFE_MS)
            shutdown(connection->fd, SHUT_RDWR);
    const bool exist = !TAILQ_EMPTY(&all->list);
    uv_mutex_unlock(&all->lock);
    return exist;
}

static bool have_connections(struct connections *all)
{
    uv_mutex_lock(&all->lock);
    const bool exist = !TAILQ_EMPTY(&all->list);
    uv_mutex_unlock(&all->lock);
    return exist;
}

/* ---- Requests ---- */

/* A suspended request, until its reply is sent. */
struct request {
    struct MHD_Connection *connection;
    enum shuf__exposition_format format;
    char *text; /* NULL before the loop has made it, and when out of memory */
    size_t size;
    TAILQ_ENTRY(request) link;
};

TAILQ_HEAD(requests, request);

struct shuf__http {
    struct shuf__service *service;
    struct MHD_Daemon *daemon;
    uv_async_t wake; /* wakes the loop: a request or a connection has come */
    uv_timer_t text_timer, sweep_timer;
    uint64_t last_ms; /* time of the last text */
    unsigned open_handles;

    struct connections connections;

    uv_mutex_t lock; /* guards all fields below */
    struct requests waiting;
    bool stopping;
};

/* ---- The thread of libmicrohttpd ---- */

static enum MHD_Result reply_text(struct MHD_Connection *connection, unsigned code,
                                  const char *type, char *text, size_t size,
                                  enum MHD_ResponseMemoryMode mode)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(size, text, mode);
    if (!response)
        return MHD_NO;
    MHD_add_response_header(response, "Content-Type", type);
    MHD_add_response_header(response, "Connection", "close");
    if (code == MHD_HTTP_METHOD_NOT_ALLOWED)
        MHD_add_response_header(response, "Allow", "GET, HEAD");
    enum MHD_Result result = MHD_queue_response(connection, code, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result refuse(struct MHD_Connection *connection, unsigned code, const char *text)
{
    return reply_text(connection, code, "text/plain; charset=utf-8", (char *)(uintptr_t)text,
                      strlen(text), MHD_RESPMEM_PERSISTENT);
}

static int fd_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    return info ? info->connect_fd : -1;
}

static enum shuf__exposition_format format_of(struct MHD_Connection *connection)
{
    const char *accept = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Accept");
    return accept && strstr(accept, "application/openmetrics-text") ? SHUF__EXPOSITION_OPENMETRICS
                                                                    : SHUF__EXPOSITION_PROMETHEUS;
}

static enum MHD_Result begin_request(struct shuf__http *http, struct MHD_Connection *connection,
                                     void **state)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct request *request = calloc(1, sizeof *request);
    if (!request)
        return MHD_NO;
    request->connection = connection;
    request->format = format_of(connection);
    *state = request;
    if (info)
        note_request(&http->connections, info->socket_context);
    uv_mutex_lock(&http->lock);
    const bool stopping = http->stopping;
    if (!stopping) {
        MHD_suspend_connection(connection);
        TAILQ_INSERT_TAIL(&http->waiting, request, link);
    }
    uv_mutex_unlock(&http->lock);
    if (stopping)
        return MHD_NO;
    uv_async_send(&http->wake);
    return MHD_YES;
}

static enum MHD_Result end_request(struct request *request)
{
    char *text = request->text;
    request->text = NULL;
    if (!text)
        return refuse(request->connection, MHD_HTTP_SERVICE_UNAVAILABLE, "no metrics now\n");
    return reply_text(request->connection, MHD_HTTP_OK,
                      request->format == SHUF__EXPOSITION_OPENMETRICS
                          ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                          : "text/plain; version=0.0.4; charset=utf-8",
                      text, request->size, MHD_RESPMEM_MUST_FREE);
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_size, void **state)
{
    (void)version;
    (void)upload;
    (void)upload_size;
    if (*state)
        return end_request(*state);
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
        return refuse(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "expected GET\n");
    if (strcmp(url, "/metrics") != 0)
        return refuse(connection, MHD_HTTP_NOT_FOUND, "expected /metrics\n");
    return begin_request(context, connection, state);
}

static void on_completed(void *context, struct MHD_Connection *connection, void **state,
                         enum MHD_RequestTerminationCode code)
{
    struct request *request = *state;
    (void)context;
    (void)connection;
    (void)code;
    if (request)
        free(request->text);
    free(request);
    *state = NULL;
}

static void on_connection(void *context, struct MHD_Connection *of, void **state,
                          enum MHD_ConnectionNotificationCode code)
{
    struct shuf__http *http = context;
    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
        remove_connection(&http->connections, *state);
    } else {
        *state = add_connection(&http->connections, fd_of(of));
        uv_async_send(&http->wake);
    }
}

/* ---- The loop's thread ---- */

static void on_sweep(uv_timer_t *timer)
{
    struct shuf__http *http = timer->data;
    if (!sweep_connections(&http->connections))
        uv_timer_stop(timer);
}

/* Copies the text of another waiting request of the same format, if there is one. Else makes a
 * text. It has no rows of users, because any process of the machine may connect to the port. */
static void make_text(struct shuf__http *http, struct request *request,
                      const struct requests *others)
{
    const struct request *other;
    TAILQ_FOREACH (other, others, link)
        if (other->text && other->format == request->format)
            break;
    if (!other) {
        const struct shuf__metrics_reader anybody = {.sees = SHUF__METRICS_NO_USER};
        request->text = shuf__metrics_text(http->service, anybody, request->format, &request->size);
        return;
    }
    request->text = malloc(other->size);
    request->size = other->size;
    if (request->text)
        memcpy(request->text, other->text, other->size);
}

static void answer(struct shuf__http *http, bool with_text)
{
    struct request *request;
    struct requests waiting = TAILQ_HEAD_INITIALIZER(waiting);
    uv_mutex_lock(&http->lock);
    TAILQ_CONCAT(&waiting, &http->waiting, link);
    uv_mutex_unlock(&http->lock);
    if (with_text)
        TAILQ_FOREACH (request, &waiting, link)
            make_text(http, request, &waiting);
    while ((request = TAILQ_FIRST(&waiting)) != NULL) {
        TAILQ_REMOVE(&waiting, request, link);
        MHD_resume_connection(request->connection); /* now libmicrohttpd may free the request */
    }
    http->last_ms = now_ms();
}

static void on_text(uv_timer_t *timer)
{
    answer(timer->data, true);
}

static void on_wake(uv_async_t *wake)
{
    struct shuf__http *http = wake->data;
    const uint64_t passed = now_ms() - http->last_ms;
    uv_mutex_lock(&http->lock);
    const bool is_waiting = !TAILQ_EMPTY(&http->waiting);
    uv_mutex_unlock(&http->lock);
    if (have_connections(&http->connections) && !uv_is_active((uv_handle_t *)&http->sweep_timer))
        uv_timer_start(&http->sweep_timer, on_sweep, SWEEP_MS, SWEEP_MS);
    if (is_waiting && passed >= PAUSE_MS)
        answer(http, true);
    else if (is_waiting && !uv_is_active((uv_handle_t *)&http->text_timer))
        uv_timer_start(&http->text_timer, on_text, PAUSE_MS - passed, 0);
}

/* ---- Life ---- */

static void free_http(struct shuf__http *http)
{
    destroy_connections(&http->connections);
    uv_mutex_destroy(&http->lock);
    free(http);
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct shuf__http *http = handle->data;
    if (--http->open_handles > 0)
        return;
    free_http(http);
}

static void close_handles(struct shuf__http *http)
{
    uv_close((uv_handle_t *)&http->wake, on_handle_closed);
    uv_close((uv_handle_t *)&http->text_timer, on_handle_closed);
    uv_close((uv_handle_t *)&http->sweep_timer, on_handle_closed);
}

static struct shuf__http *make_http(struct shuf__service *service)
{
    struct shuf__http *http = calloc(1, sizeof *http);
    if (!http || uv_mutex_init(&http->lock) != 0) {
        free(http);
        return NULL;
    }
    if (!init_connections(&http->connections)) {
        uv_mutex_destroy(&http->lock);
        free(http);
        return NULL;
    }
    http->service = service;
    TAILQ_INIT(&http->waiting);
    if (uv_async_init(service->loop, &http->wake, on_wake) != 0) {
        free_http(http);
        return NULL;
    }
    uv_timer_init(service->loop, &http->text_timer);
    uv_timer_init(service->loop, &http->sweep_timer);
    http->wake.data = http->text_timer.data = http->sweep_timer.data = http;
    http->open_handles = 3;
    uv_unref((uv_handle_t *)&http->wake);
    return http;
}

static int open_port(const struct shuf__endpoint *endpoint)
{
    const int yes = 1; /* else bind() may fail while connections of the last daemon still close */
    const int fd = socket(endpoint->family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(fd, &endpoint->address.any, endpoint->length) == 0 && listen(fd, SOMAXCONN) == 0)
        return fd;
    const int cause = errno;
    close(fd);
    errno = cause;
    return -1;
}

static struct MHD_Daemon *start_daemon(struct shuf__http *http, int fd)
{
    return MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, on_request, http,
        MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_SECONDS, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)CONNECTION_MEMORY, MHD_OPTION_NOTIFY_COMPLETED, on_completed, http,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, http, MHD_OPTION_END);
}

shuf_status shuf__http_start(struct shuf__http **out, struct shuf__service *service,
                             struct shuf__error *error)
{
    const char *metrics = service->config->metrics;
    struct shuf__endpoint endpoint;
    *out = NULL;
    if (shuf__endpoint_parse("metrics", metrics, &endpoint, error))
        return error->status;
    if (endpoint.family == AF_UNSPEC)
        return SHUF_OK;
    const int fd = open_port(&endpoint);
    if (fd < 0)
        return shuf__fail(error, SHUF_IO, "metrics %.108s: %s%s", metrics, strerror(errno),
                          shuf__remedy_of_port(errno));
    struct shuf__http *http = make_http(service);
    if (!http) {
        close(fd);
        return shuf__fail(error, SHUF_NO_MEMORY, "metrics: out of memory or descriptors");
    }
    http->daemon = start_daemon(http, fd);
    if (!http->daemon) {
        close(fd);
        close_handles(http);
        return shuf__fail(error, SHUF_IO, "metrics: the HTTP server does not start");
    }
    *out = http;
    return SHUF_OK;
}

void shuf__http_stop(struct shuf__http *http)
{
    if (!http)
        return;
    uv_mutex_lock(&http->lock);
    http->stopping = true;
    uv_mutex_unlock(&http->lock);
    answer(http, false);
    MHD_stop_daemon(http->daemon);
    close_handles(http);
}

#else

shuf_status shuf__http_start(struct shuf__http **http, struct shuf__service *service,
                             struct shuf__error *error)
{
    *http = NULL;
    if (strcmp(service->config->metrics, "off") == 0)
        return SHUF_OK;
    return shuf__fail(error, SHUF_INVALID,
                      "metrics %.64s: this build has no HTTP server (libmicrohttpd); use "
                      "metrics_file or `shufctl metrics`",
                      service->config->metrics);
}

void shuf__http_stop(struct shuf__http *http)
{
    (void)http;
}

#endif
