/* SPDX-License-Identifier: MIT
 *
 * See relay.h. Bytes stay in the socket that they came from until the other socket has taken them,
 * so the relay needs no buffer for each client.
 */
#include "relay.h"

#include "config/thread.h"
#include "net/listener.h"
#include "net/peer_socket.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <uv.h>

enum {
    CHUNK = 16 << 10,
    LIFE_MS = 10000,
    TICK_MS = 1000,
    PAUSE_MS = 100, /* after a failed accept4() */
    OTHERS = 2,     /* descriptors to poll that are not of clients: `stop` and `listening` */
};

struct passage {
    int client; /* -1 once it is cut off: the server then closes its end */
    int server;
    uint64_t since_ms;
    bool asked;       /* the client has ended its request */
    bool reply_waits; /* the client's socket is full */
};

struct shuf__relay {
    int listening, stop; /* `stop`: an eventfd */
    void (*connected)(void *context, int fd, const struct ucred *client);
    void *context;
    pthread_t thread;
    uint64_t again_ms; /* when it may accept again */
    size_t count;
    struct passage passages[SHUF__RELAY_MOST];
    uint8_t bytes[CHUNK];
};

static uint64_t now_ms(void)
{
    return uv_hrtime() / 1000000;
}

static bool is_transient(int cause)
{
    return cause == EAGAIN || cause == EINTR;
}

/* ---- one client; false: it has ended ---- */

/* The server's socket has room for much more than a request. A server that has replied may not read
 * the rest. */
static bool copy_request(struct shuf__relay *relay, struct passage *p)
{
    const ssize_t seen = shuf__peer_socket_peek(p->client, relay->bytes, sizeof relay->bytes);
    if (seen < 0)
        return is_transient(errno);
    if (seen == 0) {
        p->asked = true;
        shutdown(p->server, SHUT_WR);
        return true;
    }
    const ssize_t sent = send(p->server, relay->bytes, (size_t)seen, MSG_NOSIGNAL | MSG_DONTWAIT);
    p->asked = sent <= 0;
    return p->asked || recv(p->client, relay->bytes, (size_t)sent, MSG_DONTWAIT) == sent;
}

static bool copy_reply(struct shuf__relay *relay, struct passage *p)
{
    const ssize_t seen =
        recv(p->server, relay->bytes, sizeof relay->bytes, MSG_PEEK | MSG_DONTWAIT);
    if (seen <= 0)
        return seen < 0 && is_transient(errno);
    const ssize_t sent = send(p->client, relay->bytes, (size_t)seen, MSG_NOSIGNAL | MSG_DONTWAIT);
    p->reply_waits = sent < seen;
    if (sent < 0)
        return is_transient(errno);
    return recv(p->server, relay->bytes, (size_t)sent, MSG_DONTWAIT) == sent;
}

/* Discards what the server still sends, until it closes its end. */
static bool await_server(struct shuf__relay *relay, const struct passage *p, short server)
{
    const ssize_t got =
        server ? recv(p->server, relay->bytes, sizeof relay->bytes, MSG_DONTWAIT) : 1;
    return got > 0 || (got < 0 && is_transient(errno));
}

static bool serve_client(struct shuf__relay *relay, struct passage *p, short client, short server)
{
    if (client & (POLLERR | POLLHUP | POLLNVAL))
        return false;
    if (client & POLLIN && !copy_request(relay, p))
        return false;
    return (!server && !(client & POLLOUT)) || copy_reply(relay, p);
}

static void cut_off(struct passage *p)
{
    shuf__peer_socket_close(p->client);
    p->client = -1;
    p->reply_waits = false;
    shutdown(p->server, SHUT_WR);
}

/* False: nothing is left of the client. The server counts its connections, so the relay has a
 * client until the server has closed its end too. */
static bool serve(struct shuf__relay *relay, struct passage *p, short client, short server)
{
    if (now_ms() - p->since_ms >= LIFE_MS)
        return false;
    if (p->client < 0)
        return await_server(relay, p, server);
    if (!serve_client(relay, p, client, server))
        cut_off(p);
    return true;
}

static void end(struct passage *p)
{
    if (p->client >= 0)
        cut_off(p);
    close(p->server);
}

/* ---- all clients ---- */

/* A client for which there is no descriptor is cut off. */
static void accept_client(struct shuf__relay *relay)
{
    int ends[2];
    const int client = shuf__peer_socket_accept(relay->listening);
    if (client < 0) {
        if (!is_transient(errno) && errno != ECONNABORTED)
            relay->again_ms = now_ms() + PAUSE_MS; /* no descriptors or no memory */
        return;
    }
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) {
        shuf__peer_socket_close(client);
        return;
    }
    const struct ucred peer = shuf__peer_of(client);
    relay->passages[relay->count++] =
        (struct passage){.client = client, .server = ends[0], .since_ms = now_ms()};
    relay->connected(relay->context, ends[1], &peer);
}

static nfds_t list(const struct shuf__relay *relay, struct pollfd *polled)
{
    const bool has_room = relay->count < SHUF__RELAY_MOST && now_ms() >= relay->again_ms;
    nfds_t count = OTHERS;
    polled[0] = (struct pollfd){.fd = relay->stop, .events = POLLIN};
    polled[1] = (struct pollfd){.fd = has_room ? relay->listening : -1, .events = POLLIN};
    for (size_t i = 0; i < relay->count; i++) {
        const struct passage *p = &relay->passages[i];
        const short in = p->asked ? 0 : POLLIN, out = p->reply_waits ? POLLOUT : 0;
        polled[count++] = (struct pollfd){.fd = p->client, .events = (short)(in | out)};
        polled[count++] = (struct pollfd){.fd = p->reply_waits ? -1 : p->server, .events = POLLIN};
    }
    return count;
}

/* From the last to the first, so that the last one can take the place of one that ends. */
static void serve_all(struct shuf__relay *relay, const struct pollfd *polled)
{
    for (size_t i = relay->count; i-- > 0;) {
        const struct pollfd *of = polled + OTHERS + 2 * i;
        if (serve(relay, &relay->passages[i], of[0].revents, of[1].revents))
            continue;
        end(&relay->passages[i]);
        relay->passages[i] = relay->passages[--relay->count];
    }
}

/* In ms; -1: without end. */
static int patience(const struct shuf__relay *relay)
{
    if (now_ms() < relay->again_ms)
        return PAUSE_MS;
    return relay->count > 0 ? TICK_MS : -1;
}

static void *relay_all(void *context)
{
    struct shuf__relay *relay = context;
    struct pollfd polled[OTHERS + 2 * SHUF__RELAY_MOST];
    for (;;) {
        const nfds_t count = list(relay, polled);
        if (poll(polled, count, patience(relay)) < 0)
            continue;
        if (polled[0].revents)
            return NULL;
        serve_all(relay, polled);
        if (polled[1].revents)
            accept_client(relay);
    }
}

/* ---- life ---- */

struct shuf__relay *shuf__relay_start(int listening,
                                      void (*connected)(void *context, int fd,
                                                        const struct ucred *client),
                                      void *context)
{
    struct shuf__relay *relay = calloc(1, sizeof *relay);
    if (!relay)
        return NULL;
    relay->listening = listening;
    relay->connected = connected;
    relay->context = context;
    relay->stop = eventfd(0, EFD_CLOEXEC);
    if (relay->stop >= 0 && shuf__thread_start(&relay->thread, relay_all, relay) == 0)
        return relay;
    if (relay->stop >= 0)
        close(relay->stop);
    free(relay);
    return NULL;
}

void shuf__relay_stop(struct shuf__relay *relay)
{
    const uint64_t one = 1;
    if (!relay)
        return;
    (void)!write(relay->stop, &one, sizeof one);
    pthread_join(relay->thread, NULL);
    while (relay->count > 0)
        end(&relay->passages[--relay->count]);
    shuf__peer_socket_close_listening(relay->listening);
    close(relay->stop);
    free(relay);
}
