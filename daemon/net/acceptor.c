/* SPDX-License-Identifier: MIT
 *
 * See acceptor.h.
 */
#include "acceptor.h"

#include "peer_socket.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    ACCEPT_AGAIN_MS = 100,
    CLOSING_MS = 1000,
    PATIENCE_MS = 1000, /* in which every refused connection gets its reply */
    DROPS = 50,         /* most connections that are dropped in a millisecond */
    RESERVE = 16,       /* one of 16 connections is reserved for root and the daemon's user */
    BUFFER_PART = 16,
    BUFFER_LEAST = 16 << 10,
};

/* A limit, the number that counts to it, and how much a new connection adds. */
struct claim {
    uint64_t all, own, needed, limit;        /* `all` and `own`: without the new connection */
    struct shuf__amount of_user, configured; /* `configured`: user_clients, for the message */
    const char *name, *unit, *cause;         /* for messages */
};

/* A part of the limit is reserved for root and the daemon's user, who must be able to connect to
 * find a problem. */
static shuf_status check_claim(const struct claim *c, uid_t uid, struct shuf__error *error)
{
    char part[SHUF__NUMBER_TEXT];
    const bool privileged = shuf__uid_is_privileged(uid);
    const uint64_t most = shuf__share_of_clients(c->of_user, c->limit, c->all - c->own);
    if (c->all + c->needed > c->limit - (privileged ? 0 : c->limit / RESERVE))
        return shuf__fail(error, SHUF_BUSY, "%s %" PRIu64 ": the most that %s; try again later",
                          c->name, c->limit, c->cause);
    if (!privileged && c->of_user.number > 0 && c->own > 0 && c->own + c->needed > most)
        return shuf__fail(error, SHUF_BUSY,
                          "user_clients %s: beside the other users, user %" PRIu32
                          " may have %" PRIu64 " %s, and has %" PRIu64 "; close one",
                          shuf__amount_text(part, c->configured), (uint32_t)uid, most, c->unit,
                          c->own);
    return SHUF_OK;
}

static shuf_status check_connections(const struct shuf__acceptor *acceptor,
                                     const struct shuf__account *account, uid_t uid,
                                     struct shuf__error *error)
{
    const bool files_are_few = acceptor->sessions->limit < acceptor->sessions->configured;
    const struct claim claim = {
        .all = acceptor->sessions->count,
        .own = account ? account->clients : 0,
        .needed = 1,
        .limit = acceptor->sessions->limit,
        .of_user = acceptor->of_user,
        .configured = acceptor->of_user,
        .name = "clients",
        .unit = "connections",
        .cause = files_are_few ? "the limit of open files allows" : "may be connected",
    };
    return check_claim(&claim, uid, error);
}

/* The first connection of a process takes another descriptor (memory/client_process.h), and so does
 * the first one of a user (ready.h). */
static shuf_status check_descriptors(const struct shuf__acceptor *acceptor,
                                     const struct shuf__account *account, const struct ucred *peer,
                                     struct shuf__error *error)
{
    const struct shuf__processes *processes = &acceptor->sessions->process_watches->processes;
    const bool is_connected = account && account->clients > 0;
    const bool is_first = !shuf__processes_have(processes, peer->pid);
    struct claim claim = {
        .all = acceptor->sessions->count + processes->count + acceptor->sessions->ready.count,
        .own = account ? account->clients + account->processes + is_connected : 0,
        .needed = 1 + (uint64_t)is_first + (uint64_t)!is_connected,
        .limit = acceptor->descriptors,
        .of_user = acceptor->of_user,
        .configured = acceptor->of_user,
        .name = "connections and processes",
        .unit = "connections and processes",
        .cause = "the limit of open files allows",
    };
    if (!acceptor->of_user.percent && acceptor->of_user.number > 0)
        claim.of_user.number = 2 * acceptor->of_user.number + 1; /* the last one is of the user */
    return check_claim(&claim, peer->uid, error);
}

/* A client of an unknown user would have no limits. */
static shuf_status check_peer(const struct ucred *peer, struct shuf__error *error)
{
    if (shuf__peer_is_known(peer))
        return SHUF_OK;
    return shuf__fail(error, SHUF_IO, "the user of the connection cannot be read: %s; try again",
                      strerror(errno));
}

static bool may_not_open(const struct shuf__acceptor *acceptor, const struct ucred *peer,
                         struct shuf__error *error)
{
    const struct shuf__account *account =
        shuf__account_find(acceptor->sessions->accounts, peer->uid);
    return check_peer(peer, error) || check_connections(acceptor, account, peer->uid, error) ||
           check_descriptors(acceptor, account, peer, error);
}

/* Without room for a reply, it only closes the connection: libshuf tries again then. */
static void refuse(struct shuf__acceptor *acceptor, int fd, const struct shuf__error *error)
{
    if (shuf__refusals_are_full(&acceptor->refusals)) {
        shuf__peer_socket_close(fd);
        acceptor->dropped++;
    } else {
        shuf__refusals_add(&acceptor->refusals, fd, error);
    }
    acceptor->sessions->stats->refused++;
    shuf__log_client(acceptor->sessions->log, SHUF__LOG_WARNING, "client refused: %s", error->text);
}

/* A reply that its client does not read stays in the send buffer, which no budget counts. So all
 * these buffers together may have a sixteenth of the memory. The kernel doubles the size that it is
 * given (socket(7)). */
static void limit_send_buffer(const struct shuf__acceptor *acceptor, int fd)
{
    const struct shuf__sessions *sessions = acceptor->sessions;
    const uint64_t total = sessions->allocations->budgets[SHUF__SIDE_HOST].total,
                   part = total / BUFFER_PART / sessions->limit,
                   most = part > BUFFER_LEAST ? part : BUFFER_LEAST;
    int size;
    socklen_t length = sizeof size;
    if (total == 0 || getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, &length) != 0 ||
        (uint64_t)size <= most)
        return;
    size = (int)(most / 2);
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
}

static void open_or_refuse(struct shuf__acceptor *acceptor, int fd)
{
    struct shuf__error error;
    const struct ucred peer = shuf__peer_of(fd);
    if (may_not_open(acceptor, &peer, &error)) {
        refuse(acceptor, fd, &error);
        return;
    }
    limit_send_buffer(acceptor, fd);
    shuf__session_open(acceptor->sessions, fd, &peer);
}

static struct shuf__acceptor *acceptor_of(struct shuf__ready *ready)
{
    return (struct shuf__acceptor *)((char *)ready - offsetof(struct shuf__acceptor, ready));
}

static bool watch(struct shuf__acceptor *acceptor, uint32_t events)
{
    const uint32_t before = acceptor->watched;
    acceptor->watched = events;
    return shuf__ready_watch(&acceptor->ready, acceptor->listener->fd, before, events);
}

static void accept_again(uv_timer_t *timer)
{
    ((struct shuf__acceptor *)timer->data)->dropped = 0;
    shuf__acceptor_start(timer->data);
}

/* Stops accepting for a while when there are no descriptors or no memory. Else the loop would spin,
 * because the connection stays in the backlog. A client may close its connection meanwhile. */
static void pause_accepting(struct shuf__acceptor *acceptor)
{
    shuf__log_client(acceptor->sessions->log, SHUF__LOG_WARNING,
                     "accept: %s; trying again in %d ms",
                     errno == EUSERS ? "too many connections whose clients sent descriptors wait "
                                       "to be closed"
                                     : strerror(errno),
                     ACCEPT_AGAIN_MS);
    watch(acceptor, 0);
    uv_timer_start(&acceptor->again, accept_again, ACCEPT_AGAIN_MS, 0);
}

static void on_event(struct shuf__ready *ready, uint32_t events)
{
    (void)events; /* accept4() reports an error */
    shuf__ready_add(ready);
}

static void on_room(struct shuf__refusals *refusals)
{
    struct shuf__acceptor *acceptor =
        (struct shuf__acceptor *)((char *)refusals - offsetof(struct shuf__acceptor, refusals));
    if (acceptor->awaits_room)
        shuf__acceptor_start(acceptor);
}

/* Whether to accept although a refusal has no room. A user who connects without a pause keeps the
 * backlog full, in which the connections of others wait. So after a while, connections that must be
 * refused are dropped, but not so many that the requests of others would wait. */
static bool may_drop(struct shuf__acceptor *acceptor)
{
    const uint64_t now = uv_hrtime(), patience = PATIENCE_MS * UINT64_C(1000000);
    if (now - acceptor->crowded > patience)
        acceptor->crowded_since = now;
    acceptor->crowded = now;
    if (now - acceptor->crowded_since < patience)
        return false;
    if (acceptor->dropped < DROPS)
        return true;
    if (!uv_is_active((uv_handle_t *)&acceptor->again))
        uv_timer_start(&acceptor->again, accept_again, 1, 0);
    return false;
}

/* Accepts one connection. Another one waits for another turn, or until the refusals have room. */
static void take_turn(struct shuf__ready *ready)
{
    struct shuf__acceptor *acceptor = acceptor_of(ready);
    if (shuf__refusals_are_full(&acceptor->refusals) && !may_drop(acceptor)) {
        acceptor->awaits_room = true;
        watch(acceptor, 0);
        return;
    }
    const int fd = shuf__peer_socket_accept(acceptor->listener->fd);
    if (fd < 0 && errno == EAGAIN)
        return;
    if (fd < 0 && errno != ECONNABORTED && errno != EINTR) {
        pause_accepting(acceptor);
        return;
    }
    if (fd >= 0)
        open_or_refuse(acceptor, fd);
    shuf__ready_add(ready);
}

static void on_closing_timer(uv_timer_t *timer)
{
    (void)timer; /* on_prepare() starts it again */
    shuf__closing_continue();
}

static void on_prepare(uv_prepare_t *prepare)
{
    struct shuf__acceptor *acceptor = prepare->data;
    if (shuf__closing_waits() && !uv_is_active((uv_handle_t *)&acceptor->closing))
        uv_timer_start(&acceptor->closing, on_closing_timer, CLOSING_MS, 0);
}

int shuf__acceptor_init(struct shuf__acceptor *acceptor, struct shuf__sessions *sessions,
                        const struct shuf__listener *listener)
{
    acceptor->sessions = sessions;
    acceptor->listener = listener;
    acceptor->watched = 0;
    acceptor->again.data = acceptor->prepare.data = acceptor;
    acceptor->ready.report = on_event;
    acceptor->ready.serve = take_turn;
    uv_timer_init(sessions->loop, &acceptor->again);
    uv_timer_init(sessions->loop, &acceptor->closing);
    uv_prepare_init(sessions->loop, &acceptor->prepare);
    uv_prepare_start(&acceptor->prepare, on_prepare);
    acceptor->refusals.has_room = on_room;
    if (!shuf__ready_join(&sessions->ready, &acceptor->ready, SHUF__READY_NOBODY))
        return uv_translate_sys_error(errno);
    return shuf__refusals_start(&acceptor->refusals, sessions->loop);
}

void shuf__acceptor_set_limits(struct shuf__acceptor *acceptor, uint64_t limit,
                               uint64_t descriptors, uint64_t closing, struct shuf__amount of_user)
{
    shuf__closing_set_room(closing);
    acceptor->sessions->limit = limit;
    acceptor->descriptors = descriptors;
    acceptor->of_user = of_user;
}

void shuf__acceptor_start(struct shuf__acceptor *acceptor)
{
    acceptor->awaits_room = false;
    if (!watch(acceptor, EPOLLIN))
        pause_accepting(acceptor);
}

void shuf__acceptor_stop(struct shuf__acceptor *acceptor)
{
    acceptor->awaits_room = false;
    watch(acceptor, 0);
    shuf__ready_remove(&acceptor->ready);
    uv_timer_stop(&acceptor->again);
}

void shuf__acceptor_close(struct shuf__acceptor *acceptor)
{
    if (!acceptor->ready.user)
        return;
    shuf__ready_leave(&acceptor->ready);
    acceptor->ready.user = NULL;
    uv_close((uv_handle_t *)&acceptor->again, NULL);
    uv_close((uv_handle_t *)&acceptor->closing, NULL);
    uv_close((uv_handle_t *)&acceptor->prepare, NULL);
    shuf__refusals_stop(&acceptor->refusals);
    shuf__closing_finish();
}
