/* SPDX-License-Identifier: MIT
 *
 * See load.h.
 */
#include "load.h"

#include "expected.h"
#include "message.h"
#include "process.h"
#include "result_message.h"
#include "shuf_status.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    CONNECTIONS = 64,
    ROOM = 16384,   /* largest reply with its values, in bytes */
    REQUEST = 256,  /* largest request, in bytes */
    QUIET = 4000,   /* so many requests without a new block mean that all blocks are mapped */
    CHECKED = 1000, /* one result in 1000 is compared value by value */
    VARINT_MOST = 10,
};

static const uint64_t seed = 7;
static const char ping[] = "*1\r\n$4\r\nPING\r\n", pong[] = "+PONG\r\n";

/* A packed request with the offsets of the numbers that change. Every number is a varint of ten
 * bytes, so it can be overwritten in place with any value. */
struct form {
    uint8_t bytes[REQUEST];
    size_t size, id, epoch, lease;
};

struct connection {
    int fd;
    uint64_t id, epoch, lease; /* id and epoch of the request in flight; lease of the last reply */
    size_t have;
    uint8_t in[ROOM];
};

struct generator {
    const struct load *load;
    struct form first, next; /* request without and with a lease to release */
    int poll;
    uint64_t requests, last_epoch;
    uint64_t quiet; /* requests since the last descriptor */
    void *views;    /* tsearch(3): the mapped blocks of all connections */
    struct shuf__arena arena;
    struct connection connections[CONNECTIONS];
};

/* ---- Requests ---- */

static void put_varint(uint8_t *at, uint64_t value)
{
    for (int i = 0; i < VARINT_MOST - 1; i++, value >>= 7)
        at[i] = (uint8_t)(value & 0x7f) | 0x80;
    at[VARINT_MOST - 1] = (uint8_t)value;
}

/* Returns the offset of the number that was packed as `mark`. */
static size_t find_mark(const struct form *form, uint64_t mark)
{
    uint8_t varint[VARINT_MOST];
    put_varint(varint, mark);
    const uint8_t *at = memmem(form->bytes, form->size, varint, sizeof varint);
    if (!at)
        die("request: a field is missing in the packed message");
    return (size_t)(at - form->bytes);
}

static void make_form(const struct load *load, bool gives_back, struct form *form)
{
    enum { ID = 1, EPOCH, LEASE }; /* 2^64 - 1 - ID is a varint of ten bytes */
    uint64_t lease = UINT64_MAX - LEASE;
    Shuf__Transport accept = load->kind == LOAD_INLINE ? SHUF__TRANSPORT__TRANSPORT_INLINE
                                                       : SHUF__TRANSPORT__TRANSPORT_MEMFD;
    Shuf__Request request = SHUF__REQUEST__INIT;
    struct shuf__result_message m;
    Shuf__Release release = SHUF__RELEASE__INIT;
    request.id = UINT64_MAX - ID;
    shuf__result_message_init(&m, SHUF__RESULT__WHAT_PERMUTE);
    request.body_case = SHUF__REQUEST__BODY_RESULT;
    request.result = &m.result;
    m.permutation.n = load->n;
    m.permutation.seed = seed;
    m.permutation.epoch = UINT64_MAX - EPOCH;
    m.delivery.accept = &accept;
    m.delivery.n_accept = 1;
    release.lease = &lease;
    release.n_lease = 1;
    m.delivery.give_back = gives_back ? &release : NULL;
    form->size = shuf__message_pack(&request.base, form->bytes, sizeof form->bytes);
    form->id = find_mark(form, request.id);
    form->epoch = find_mark(form, m.permutation.epoch);
    form->lease = gives_back ? find_mark(form, lease) : 0;
}

static void send_all(const struct connection *c, const void *bytes, size_t size)
{
    /* The socket buffer always has room for the only request in flight. */
    if (send(c->fd, bytes, size, MSG_NOSIGNAL) != (ssize_t)size)
        die("send: %s", strerror(errno));
}

static void send_request(struct generator *g, struct connection *c)
{
    struct form *form = c->lease ? &g->next : &g->first;
    if (g->load->kind == LOAD_PING) {
        send_all(c, ping, sizeof ping - 1);
        return;
    }
    c->epoch = g->load->equal ? 0 : ++g->last_epoch;
    put_varint(form->bytes + form->id, ++c->id);
    put_varint(form->bytes + form->epoch, c->epoch);
    if (c->lease)
        put_varint(form->bytes + form->lease, c->lease);
    send_all(c, form->bytes, form->size);
}

/* ---- Replies ---- */

/* Reads the available bytes. Returns the descriptor that came with them, or -1. */
static int receive(struct connection *c)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec iov = {c->in + c->have, sizeof c->in - c->have};
    struct msghdr message = {.msg_iov = &iov,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    ssize_t got = recvmsg(c->fd, &message, MSG_CMSG_CLOEXEC);
    const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    int fd = -1;
    if (got <= 0)
        die("receive: %s", got == 0 ? "the server closed the connection" : strerror(errno));
    c->have += (size_t)got;
    if (header && header->cmsg_type == SCM_RIGHTS)
        memcpy(&fd, CMSG_DATA(header), sizeof fd);
    return fd;
}

struct view {
    uint64_t block;
    const uint8_t *memory;
};

static int compare_views(const void *a, const void *b)
{
    const struct view *x = a, *y = b;
    return (x->block > y->block) - (x->block < y->block);
}

static const uint8_t *map_block(struct generator *g, const Shuf__ResultReply *p, int fd)
{
    struct view *view = malloc(sizeof *view);
    void *at = mmap(NULL, p->block_bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (!view || at == MAP_FAILED)
        die("block %" PRIu64 ": %s", p->block, strerror(errno));
    *view = (struct view){p->block, at};
    if (!tsearch(view, &g->views, compare_views))
        die("block %" PRIu64 ": no memory", p->block);
    return at;
}

/* Maps a block at its first reply, once for all connections. */
static const uint8_t *values_of(struct generator *g, const Shuf__ResultReply *p, int fd)
{
    struct view *const *found = tfind(&(struct view){.block = p->block}, &g->views, compare_views);
    if (p->descriptor != (fd >= 0) || (!found && fd < 0))
        die("reply: block %" PRIu64 ": expected a descriptor with its first reply only", p->block);
    const uint8_t *memory = found ? (*found)->memory : map_block(g, p, fd);
    if (fd >= 0) {
        close(fd);
        g->quiet = 0;
    }
    return memory + p->offset;
}

static const Shuf__ResultReply *open_reply(struct generator *g, const struct connection *c,
                                           size_t length)
{
    const Shuf__Reply *reply = shuf__reply_unpack(&g->arena, c->in + SHUF__FRAME_HEADER, length);
    if (!reply)
        die("reply: no message");
    if (reply->id != c->id || reply->status != SHUF_OK)
        die("reply %" PRIu64 ": status %" PRIu32 ", %s; expected OK for %" PRIu64, reply->id,
            reply->status, reply->message, c->id);
    if (reply->body_case != SHUF__REPLY__BODY_RESULT ||
        reply->result->bytes != g->load->n * sizeof(uint32_t))
        die("reply %" PRIu64 ": expected a permutation of %" PRIu64 " u32", reply->id, g->load->n);
    if (reply->result->shared && !g->load->equal)
        die("reply %" PRIu64 ": shared, expected one of its own", reply->id);
    return reply->result;
}

static void check(const struct generator *g, const struct connection *c, const uint8_t *bytes)
{
    uint32_t values[ROOM / sizeof(uint32_t)];
    if (g->requests % CHECKED != 0)
        return;
    memcpy(values, bytes, g->load->n * sizeof *values);
    if (!is_expected(NULL, values, g->load->n, seed, c->epoch))
        die("epoch %" PRIu64 ": other values than expected", c->epoch);
}

/* Takes a reply if it is complete. Sets *size to its bytes. */
static bool take_reply(struct generator *g, struct connection *c, int fd, size_t *size)
{
    size_t length, payload = g->load->kind == LOAD_INLINE ? g->load->n * sizeof(uint32_t) : 0;
    enum shuf__frame_result result = shuf__frame_parse(c->in, c->have, &length);
    if (result == SHUF__FRAME_BAD)
        die("reply: no frame");
    *size = SHUF__FRAME_HEADER + length + payload;
    if (result == SHUF__FRAME_PARTIAL || c->have < *size) {
        if (fd >= 0)
            die("reply: the descriptor came before its frame");
        return false;
    }
    const Shuf__ResultReply *p = open_reply(g, c, length);
    const uint8_t *bytes = payload ? c->in + *size - payload : values_of(g, p, fd);
    if (!payload && p->lease == 0)
        die("reply: no lease");
    c->lease = p->lease;
    check(g, c, bytes);
    return true;
}

static bool take_pong(const struct connection *c, size_t *size)
{
    *size = sizeof pong - 1;
    if (c->have < *size)
        return false;
    if (memcmp(c->in, pong, *size) != 0)
        die("PING: expected PONG");
    return true;
}

/* Only one request is in flight, so no bytes may follow its reply. */
static void serve(struct generator *g, struct connection *c)
{
    size_t size;
    int fd = receive(c);
    bool whole = g->load->kind == LOAD_PING ? take_pong(c, &size) : take_reply(g, c, fd, &size);
    if (!whole)
        return;
    if (c->have != size)
        die("reply: %zu bytes too many", c->have - size);
    c->have = 0;
    g->requests++;
    g->quiet++;
    send_request(g, c);
}

/* ---- Connections ---- */

static void greet(struct generator *g, struct connection *c)
{
    Shuf__Hello hello = SHUF__HELLO__INIT;
    Shuf__Request request = SHUF__REQUEST__INIT;
    uint8_t bytes[REQUEST];
    size_t length = 0;
    hello.version = SHUF__PROTOCOL_VERSION;
    hello.client = (char *)(uintptr_t) "bench";
    request.id = ++c->id;
    request.body_case = SHUF__REQUEST__BODY_HELLO;
    request.hello = &hello;
    send_all(c, bytes, shuf__message_pack(&request.base, bytes, sizeof bytes));
    while (shuf__frame_parse(c->in, c->have, &length) == SHUF__FRAME_PARTIAL)
        receive(c);
    const Shuf__Reply *reply = shuf__reply_unpack(&g->arena, c->in + SHUF__FRAME_HEADER, length);
    if (!reply || reply->status != SHUF_OK)
        die("hello: %s", reply ? reply->message : "no message came back");
    c->have = 0;
}

static void join(struct generator *g, struct connection *c, const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&address, sizeof address) != 0)
        die("connect %s: %s", path, strerror(errno));
    if (g->load->kind != LOAD_PING)
        greet(g, c);
    if (fcntl(c->fd, F_SETFL, O_NONBLOCK) != 0 ||
        epoll_ctl(g->poll, EPOLL_CTL_ADD, c->fd, &event) != 0)
        die("epoll: %s", strerror(errno));
}

static void begin(struct generator *g, const char *socket)
{
    g->poll = epoll_create1(EPOLL_CLOEXEC);
    if (g->poll < 0)
        die("epoll: %s", strerror(errno));
    make_form(g->load, false, &g->first);
    make_form(g->load, true, &g->next);
    for (unsigned i = 0; i < g->load->connections; i++)
        join(g, &g->connections[i], socket);
}

/* ---- The run ---- */

/* Runs for at least `ns`. Returns the real duration. */
static double run_for(struct generator *g, double ns)
{
    struct epoll_event events[CONNECTIONS];
    double start = now_ns(), now = start;
    for (; now - start < ns; now = now_ns()) {
        int ready = epoll_wait(g->poll, events, CONNECTIONS, -1);
        for (int i = 0; i < ready; i++)
            serve(g, events[i].data.ptr);
    }
    return now - start;
}

static double measure(const struct load *load, const char *socket, double warm_ns, double run_ns)
{
    struct generator *g = calloc(1, sizeof *g);
    if (!g || load->connections > CONNECTIONS || load->n * sizeof(uint32_t) > ROOM / 2)
        die("load: expected at most %d connections and %d bytes of values", CONNECTIONS, ROOM / 2);
    g->load = load;
    g->last_epoch = (uint64_t)now_ns(); /* no epoch of an earlier load, which may be cached */
    begin(g, socket);
    for (unsigned i = 0; i < load->connections; i++)
        send_request(g, &g->connections[i]);
    double start = now_ns();
    do
        run_for(g, warm_ns);
    while (g->quiet < QUIET && now_ns() - start < 30 * warm_ns);
    g->requests = 0;
    double ns = run_for(g, run_ns);
    return (double)g->requests / ns * 1e9;
}

double load_rate(const struct load *load, const char *socket, double warm_ns, double run_ns)
{
    double rate;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        die("pipe: %s", strerror(errno));
    pid_t pid = process_fork();
    if (pid == 0) {
        rate = measure(load, socket, warm_ns, run_ns);
        _exit(write(ends[1], &rate, sizeof rate) != sizeof rate);
    }
    close(ends[1]);
    bool reported = read(ends[0], &rate, sizeof rate) == sizeof rate;
    close(ends[0]);
    if (process_end(pid, 0) != 0 || !reported)
        die("the process that generates load failed");
    return rate;
}
