/* SPDX-License-Identifier: MIT
 *
 * Hostile connections of one user: they send noise, half a frame, requests whose results they do
 * not read, requests without end, floods of small requests, or nothing. Each connection lives for
 * two seconds at most. Then the program opens another one, until SIGTERM.
 *
 *     soak_hostile SOCKET SLOT SEED CONNECTIONS
 */
#include "message.h"
#include "result_message.h"
#include "slot.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 64, TEXT = 8192, LIFE_MS = 2000, TURN_MS = 2 };

enum kind { NOISE, HALF, UNREAD, ENDLESS, FLOOD, SILENT, KINDS };

/* The bytes that a connection of a kind sends repeatedly. */
static struct text {
    uint8_t bytes[TEXT];
    size_t size;
} texts[KINDS], hello;

struct connection {
    int fd; /* -1: none */
    enum kind kind;
    size_t sent; /* of the current text */
    bool greeted;
    uint64_t end_ms;
};

static struct sockaddr_un address = {.sun_family = AF_UNIX};

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* ---- The texts ---- */

static void add_request(struct text *text, Shuf__Request *request)
{
    static uint64_t id;
    request->id = ++id;
    const size_t size =
        shuf__message_pack(&request->base, text->bytes + text->size, TEXT - text->size);
    if (size == 0)
        errx(1, "a request does not fit");
    text->size += size;
}

static void make_hello(void)
{
    Shuf__Hello body = SHUF__HELLO__INIT;
    Shuf__Request request = SHUF__REQUEST__INIT;
    body.version = SHUF__PROTOCOL_VERSION;
    body.client = (char *)(uintptr_t) "hostile";
    request.body_case = SHUF__REQUEST__BODY_HELLO;
    request.hello = &body;
    add_request(&hello, &request);
}

static void add_permutation(struct text *text, uint64_t n, bool is_endless)
{
    Shuf__Transport copy = SHUF__TRANSPORT__TRANSPORT_INLINE;
    struct shuf__result_message body;
    Shuf__Request request = SHUF__REQUEST__INIT;
    shuf__result_message_init(&body, SHUF__RESULT__WHAT_PERMUTE);
    body.permutation.n = n;
    body.delivery.accept = &copy;
    body.delivery.n_accept = 1;
    if (is_endless) {
        body.permutation.algorithm = (char *)(uintptr_t) "philox24";
        shuf__result_message_add_view(&body, SHUF__PERMUTE__VIEW_SLICE);
        body.slice.offset = n - 2;
        body.slice.count = body.slice.stride = 1;
    }
    request.body_case = SHUF__REQUEST__BODY_RESULT;
    request.result = &body.result;
    add_request(text, &request);
}

static void make_flood(struct text *text)
{
    while (text->size < TEXT - 256) {
        uint64_t unknown = text->size;
        Shuf__Status status = SHUF__STATUS__INIT;
        Shuf__Release release = SHUF__RELEASE__INIT;
        Shuf__Request ask = SHUF__REQUEST__INIT, give = SHUF__REQUEST__INIT;
        ask.body_case = SHUF__REQUEST__BODY_STATUS;
        ask.status = &status;
        release.lease = &unknown;
        release.n_lease = 1;
        give.body_case = SHUF__REQUEST__BODY_RELEASE;
        give.release = &release;
        add_request(text, &ask);
        add_request(text, &give);
    }
}

static void make_texts(unsigned seed)
{
    const uint64_t n = (UINT64_C(1) << 62) - 1;
    make_hello();
    for (; texts[NOISE].size < TEXT; texts[NOISE].size++)
        texts[NOISE].bytes[texts[NOISE].size] = (uint8_t)rand_r(&seed);
    add_permutation(&texts[HALF], 1000, false);
    texts[HALF].size /= 2;
    add_permutation(&texts[UNREAD], 1000000, false);
    add_permutation(&texts[ENDLESS], n, true);
    make_flood(&texts[FLOOD]);
}

/* ---- Connections ---- */

static void end(struct connection *c)
{
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
    slot->cancelled++; /* here: connections that have ended */
}

static void begin(struct connection *c)
{
    *c = (struct connection){.kind = (enum kind)(rand() % KINDS),
                             .end_ms = now_ms() + (uint64_t)(rand() % LIFE_MS)};
    c->greeted = c->kind == NOISE;
    c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (c->fd < 0)
        err(1, "socket");
    if (connect(c->fd, (const struct sockaddr *)&address, sizeof address))
        end(c); /* the backlog is full, or there is no daemon: the next turn tries again */
}

/* Sends as much as the socket takes, but at most one text. False: the daemon has closed. */
static bool send_some(struct connection *c)
{
    const struct text *text = c->greeted ? &texts[c->kind] : &hello;
    if (c->sent == text->size)
        return true;
    const ssize_t size =
        send(c->fd, text->bytes + c->sent, text->size - c->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (size < 0)
        return errno == EAGAIN;
    slot->calls += (uint64_t)size; /* here: bytes */
    c->sent += (size_t)size;
    if (c->sent < text->size)
        return true;
    if (!c->greeted || c->kind != HALF)
        c->sent = 0;
    c->greeted = true;
    return true;
}

static bool read_some(const struct connection *c)
{
    uint8_t bytes[65536];
    if (c->kind == UNREAD)
        return true;
    const ssize_t size = recv(c->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    return size > 0 || (size < 0 && errno == EAGAIN);
}

static void take_turn(struct connection *c)
{
    if (c->fd < 0)
        begin(c);
    else if (now_ms() >= c->end_ms || !send_some(c) || !read_some(c))
        end(c);
}

int main(int argc, char **argv)
{
    static struct connection connections[MOST];
    if (argc != 5)
        errx(64, "usage: soak_hostile SOCKET SLOT SEED CONNECTIONS");
    snprintf(address.sun_path, sizeof address.sun_path, "%s", argv[1]);
    slot_open(argv[2]);
    const unsigned seed = (unsigned)strtoull(argv[3], NULL, 0);
    const int count = atoi(argv[4]);
    if (count < 1 || count > MOST)
        errx(64, "CONNECTIONS: %s: expected 1 to %d", argv[4], MOST);
    srand(seed);
    make_texts(seed);
    for (int i = 0; i < count; i++)
        begin(&connections[i]);
    while (!slot_stop) {
        for (int i = 0; i < count; i++)
            take_turn(&connections[i]);
        poll(NULL, 0, TURN_MS);
    }
}
