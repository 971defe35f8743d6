/* SPDX-License-Identifier: MIT
 *
 * See client.h.
 */
#include "client.h"
#include "fuzz.h"
#include "message.h"
#include "shuf/fingerprint.h"
#include "shuf/primefold.h"
#include "shuf/uniform.h"
#include "shuf_status.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- Values ---- */

enum { CHECKED = 29 }; /* values of a row, about */

/* The value of the permutation, or its position, at place `i`. */
static uint64_t place_of(const struct values_order *order, uint64_t i)
{
    shuf_primefold f = shuf_primefold_make_keyed(order->n, order->key, order->epoch);
    if (!order->inverse)
        return shuf_primefold_forward(&f, i);
    shuf_primefold_make_inverse(&f);
    return shuf_primefold_inverse(&f, i);
}

static uint64_t uniform_at(const struct values *v, uint64_t i)
{
    const shuf_stream s = shuf_uniform_make_keyed(v->order.key, v->stream);
    return v->width == 4 ? shuf_uniform_u32(&s, v->offset + i)
                         : shuf_uniform_u64(&s, v->offset + i);
}

/* Value number `i` of the result, counted over its rows. Not for plans. */
static uint64_t value_at(const struct values *v, uint64_t i)
{
    if (v->kind == VALUES_UNIFORM)
        return uniform_at(v, i);
    if (v->shuffled.n)
        i = place_of(&v->shuffled, i);
    struct values_order row = v->order;
    row.epoch += i / v->count;
    return place_of(&row, (v->offset + i % v->count * v->stride) % row.n);
}

static uint64_t read_value(const void *memory, unsigned width, uint64_t i)
{
    uint64_t value = 0;
    memcpy(&value, (const char *)memory + i * width, width);
    return value;
}

/* ---- Plans ---- */

static uint64_t sum(const uint64_t *sizes, uint64_t count)
{
    uint64_t total = 0;
    for (uint64_t r = 0; r < count; r++)
        total += sizes[r];
    return total;
}

/* The rank that has record number `at` of all records. */
static uint64_t rank_of(const uint64_t sizes[VALUES_RANKS], uint64_t at)
{
    uint64_t rank = 0;
    for (; at >= sizes[rank]; rank++)
        at -= sizes[rank];
    return rank;
}

/* One direction of a plan. The lists are in memory: how many records go to, or come from, each
 * rank, and the places of these records on this rank. */
struct direction {
    const uint64_t *here, *there; /* sizes of the ranks, on this side and on the other side */
    uint64_t counts, places;      /* where the lists begin */
    bool inverse;                 /* of the permutation from a place here to one there */
};

static void check_direction(const struct values *v, const void *memory, const struct direction *d)
{
    struct values_order order = v->order;
    const uint64_t first = sum(d->here, v->rank), count = d->here[v->rank];
    uint64_t counts[VALUES_RANKS];
    order.inverse = d->inverse;
    for (uint64_t r = 0; r < v->world; r++)
        counts[r] = read_value(memory, v->width, d->counts + r);
    fuzz_require(sum(counts, v->world) == count);
    for (uint64_t i = 0; i < count; i += 1 + count / CHECKED) {
        const uint64_t place = read_value(memory, v->width, d->places + i);
        fuzz_require(place < count);
        fuzz_require(rank_of(d->there, place_of(&order, first + place)) == rank_of(counts, i));
    }
}

/* Record q of the output is record p(q) of the input. */
static void check_plan(const struct values *v, const void *memory)
{
    const uint64_t lists = 2 * v->world;
    const struct direction sends = {v->input, v->output, 0, lists, !v->order.inverse};
    const struct direction receives = {v->output, v->input, v->world, lists + v->input[v->rank],
                                       v->order.inverse};
    fuzz_require(v->count == lists + v->input[v->rank] + v->output[v->rank]);
    check_direction(v, memory, &sends);
    check_direction(v, memory, &receives);
}

/* The number of the first window of a rank: each rank with records has one window. */
static uint64_t window_of(const struct values *v, uint64_t rank)
{
    uint64_t window = 0;
    for (uint64_t r = 0; r < rank; r++)
        window += v->input[r] > 0;
    return window;
}

static void check_one_sided(const struct values *v, const void *memory)
{
    const uint64_t first = sum(v->output, v->rank), count = v->output[v->rank];
    const uint64_t records = window_of(v, v->world) + 1, indices = records + count;
    fuzz_require(v->count == indices + count);
    fuzz_require(read_value(memory, v->width, records - 1) == count);
    for (uint64_t i = 0; i < count; i += 1 + count / CHECKED) {
        const uint64_t source = place_of(&v->order, first + i);
        const uint64_t rank = rank_of(v->input, source), window = window_of(v, rank);
        const uint64_t index = read_value(memory, v->width, indices + i);
        fuzz_require(index >= read_value(memory, v->width, window));
        fuzz_require(index < read_value(memory, v->width, window + 1));
        fuzz_require(read_value(memory, v->width, records + index) == source - sum(v->input, rank));
    }
}

/* ---- All kinds ---- */

/* Ends the process if one of the checked values in memory is wrong: some of many, all of few. */
static void check_values(const struct values *v, const void *memory)
{
    const uint64_t total = v->rows * v->count;
    if (!memory || v->kind == VALUES_UNKNOWN)
        return;
    if (v->kind == VALUES_PLAN) {
        check_plan(v, memory);
        return;
    }
    if (v->kind == VALUES_ONE_SIDED) {
        check_one_sided(v, memory);
        return;
    }
    for (uint64_t i = 0; i < total; i += 1 + total / CHECKED)
        fuzz_require(read_value(memory, v->width, i) == value_at(v, i));
}

/* The same for the first and the last values of a result, as a reply has them. */
static void check_ends(const struct values *v, const uint64_t *first, size_t n_first,
                       const uint64_t *last, size_t n_last)
{
    const uint64_t total = v->rows * v->count;
    if (v->kind != VALUES_PERMUTATION && v->kind != VALUES_UNIFORM)
        return;
    fuzz_require(n_first + n_last <= total);
    for (uint64_t i = 0; i < n_first; i++)
        fuzz_require(first[i] == value_at(v, i));
    for (uint64_t i = 0; i < n_last; i++)
        fuzz_require(last[i] == value_at(v, total - n_last + i));
}

enum {
    PAYLOAD = 1 << 20,
    FINGERPRINTED = 1000, /* values of a result whose fingerprint is checked */
    FIRST_USER = 1001,
    SECOND_USER,
};

struct client clients[CLIENTS];
static uint8_t inboxes[CLIENTS][SHUF__FRAME_HEADER + SHUF__FRAME_MAX];
static uint8_t payloads[CLIENTS][PAYLOAD];
static struct shuf__arena arena;

/* ---- Connections and leases ---- */

static bool is_privileged(const struct client *c)
{
    return c->uid == geteuid();
}

void clients_init(void)
{
    const uint32_t users[CLIENTS] = {FIRST_USER, FIRST_USER, SECOND_USER, geteuid()};
    for (int i = 0; i < CLIENTS; i++)
        clients[i] = (struct client){.fd = -1, .uid = users[i]};
}

void client_open(struct client *c)
{
    if (c->fd < 0)
        c->fd = daemon_connect(c->uid);
}

static void unmap(struct lease *lease)
{
    if (lease->memory)
        munmap(lease->memory, lease->bytes);
    lease->memory = NULL;
}

void client_close(struct client *c)
{
    for (unsigned i = 0; i < c->held; i++)
        unmap(&c->leases[i]);
    for (unsigned i = 0; i < c->maps; i++)
        unmap(&c->released[i]);
    for (unsigned i = 0; i < c->fd_count; i++)
        close(c->fds[i]);
    if (c->fd >= 0)
        close(c->fd);
    *c = (struct client){.fd = -1, .uid = c->uid};
}

uint64_t client_unmap_released(struct client *c)
{
    if (c->maps == 0)
        return 0;
    unmap(&c->released[--c->maps]);
    return c->released[c->maps].block;
}

const struct lease *client_lease(const struct client *c, uint64_t id)
{
    for (unsigned i = 0; i < c->held; i++)
        if (c->leases[i].id == id)
            return &c->leases[i];
    return NULL;
}

static void check_lease(const struct lease *lease)
{
    if (lease->memory)
        check_values(&lease->values, (const char *)lease->memory + lease->offset);
}

void clients_check(void)
{
    for (int i = 0; i < CLIENTS; i++)
        for (unsigned k = 0; k < clients[i].held; k++)
            check_lease(&clients[i].leases[k]);
}

void clients_forget_keys(void)
{
    for (int i = 0; i < CLIENTS; i++)
        for (unsigned k = 0; k < clients[i].waits; k++)
            if (clients[i].waiting[k].asked.key != DAEMON_NO_KEY)
                clients[i].waiting[k].asked.values.kind = VALUES_UNKNOWN;
}

static void keep_mapped(struct client *c, struct lease *lease)
{
    if (c->maps == CLIENT_MAPS || !lease->memory) {
        unmap(lease);
        return;
    }
    c->released[c->maps++] = *lease;
}

static void forget_lease(struct client *c, unsigned index)
{
    keep_mapped(c, &c->leases[index]);
    c->leases[index] = c->leases[--c->held];
}

static bool is_released(const struct lease *lease, const struct waiting *w)
{
    return w->everything || lease->id == w->released;
}

/* Before the reply comes, the daemon may write other values to the block. */
static void end_released(struct client *c, const struct waiting *w)
{
    for (unsigned i = 0; i < c->held; i++)
        if (is_released(&c->leases[i], w)) {
            check_lease(&c->leases[i]);
            c->leases[i].values.kind = VALUES_UNKNOWN;
        }
}

static void forget_released(struct client *c, const struct waiting *w)
{
    for (unsigned i = c->held; i-- > 0;)
        if (is_released(&c->leases[i], w))
            forget_lease(c, i);
}

/* ---- Requests ---- */

void client_send(struct client *c, Shuf__Request *request, const struct waiting *waiting)
{
    static uint8_t out[SHUF__FRAME_HEADER + SHUF__FRAME_MAX];
    if (c->fd < 0 || c->waits == CLIENT_WAITING)
        return;
    request->id = ++c->last_id;
    const size_t size = shuf__message_pack(&request->base, out, sizeof out);
    fuzz_require(size > 0);
    end_released(c, waiting);
    if (send(c->fd, out, size, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)size) {
        client_close(c);
        return;
    }
    c->waiting[c->waits] = *waiting;
    c->waiting[c->waits++].id = request->id;
}

/* ---- Results ---- */

static void map_lease(struct lease *lease, const Shuf__ResultReply *result, int fd)
{
    void *memory = mmap(NULL, result->block_bytes, PROT_READ, MAP_SHARED, fd, 0);
    fuzz_require(memory != MAP_FAILED);
    lease->memory = memory;
    lease->bytes = result->block_bytes;
    check_lease(lease);
    for (uint64_t i = 0; i < lease->buffer; i += 97)
        fuzz_require(((const uint8_t *)memory)[i] == 0);
}

/* If the client has mapped the block for another lease, it can see the values there. */
static void check_mapped_before(const struct client *c, const struct lease *lease)
{
    for (unsigned i = 0; i < c->held; i++)
        if (c->leases[i].block == lease->block && c->leases[i].memory) {
            const char *memory = c->leases[i].memory;
            check_values(&lease->values, memory + lease->offset);
            return;
        }
}

static void take_lease(struct client *c, const struct lease *asked, bool maps,
                       const Shuf__ResultReply *result, int fd)
{
    fuzz_require(c->held < DAEMON_LEASES);
    struct lease *lease = &c->leases[c->held++];
    *lease = *asked;
    lease->id = result->lease;
    lease->block = result->block;
    lease->offset = result->offset;
    if (result->transport == SHUF__TRANSPORT__TRANSPORT_MEMFD)
        fuzz_require(result->block != 0 && result->bytes <= result->block_bytes &&
                     result->offset <= result->block_bytes - result->bytes);
    else /* a buffer that only Write fills */
        fuzz_require(asked->buffer && result->transport == SHUF__TRANSPORT__TRANSPORT_INLINE);
    if (fd >= 0 && maps)
        map_lease(lease, result, fd);
    else if (fd < 0)
        check_mapped_before(c, lease);
}

static void check_fingerprint(const struct waiting *w, const struct values *v, uint64_t fingerprint)
{
    uint64_t sum = 0;
    if (!w->fingerprint || v->rows * v->count > FINGERPRINTED || v->kind == VALUES_UNKNOWN ||
        v->kind == VALUES_PLAN || v->kind == VALUES_ONE_SIDED)
        return;
    for (uint64_t i = 0; i < v->rows * v->count; i++)
        sum += shuf_fingerprint_term(w->fingerprint_index + i, value_at(v, i));
    fuzz_require(fingerprint == sum);
}

/* The reply has the number of values: that of a shard follows from several fields. */
static void check_result(const struct waiting *w, struct values *v, const Shuf__ResultReply *result)
{
    if (v->kind == VALUES_UNKNOWN || w->prefetch)
        return;
    fuzz_require(result->rows == v->rows);
    fuzz_require(v->count == 0 || v->count == result->count);
    v->count = result->count;
    fuzz_require(v->rows * v->count * v->width == result->bytes);
    check_ends(v, result->first, result->n_first, result->last, result->n_last);
    if (result->bytes > 0)
        check_fingerprint(w, v, result->fingerprint);
}

/* Whether the daemon may have ended a new lease before the client reads of it. */
static bool releases_everything(const struct client *c)
{
    for (unsigned i = 0; i < c->waits; i++)
        if (c->waiting[i].everything)
            return true;
    return false;
}

static int pop_fd(struct client *c)
{
    fuzz_require(c->fd_count > 0);
    const int fd = c->fds[0];
    memmove(c->fds, c->fds + 1, --c->fd_count * sizeof *c->fds);
    return fd;
}

static void take_result(struct client *c, const struct waiting *w, const Shuf__Reply *reply)
{
    const Shuf__ResultReply *result = reply->result;
    const int fd = result->descriptor ? pop_fd(c) : -1;
    const bool ends = result->lease != 0 && releases_everything(c);
    struct lease asked = w->asked;
    check_result(w, &asked.values, result);
    if (ends)
        asked.values.kind = VALUES_UNKNOWN;
    if (w->prefetch && result->lease != 0)
        c->prefetched = result->lease;
    else if (result->lease != 0)
        take_lease(c, &asked, w->maps && !ends, result, fd);
    if (fd >= 0)
        close(fd);
    fuzz_require(reply->payload_bytes == 0 || reply->payload_bytes == result->bytes);
    c->paid_for = asked;
}

/* ---- Other replies ---- */

static void check_index(const struct waiting *w, const Shuf__IndexReply *index)
{
    for (size_t i = 0; w->asked.values.kind == VALUES_PERMUTATION && i < index->n_value; i++)
        fuzz_require(index->value[i] == place_of(&w->asked.values.order, w->at[i]));
}

/* Users see only their own leases and their own row, except the daemon's user. */
static void check_leases(const struct client *c, const Shuf__LeasesReply *leases)
{
    for (size_t i = 0; i < leases->n_lease; i++)
        fuzz_require(is_privileged(c) || leases->lease[i]->uid == c->uid);
}

static void check_status(const struct client *c, const Shuf__StatusReply *status)
{
    for (size_t i = 0; i < status->n_users; i++)
        fuzz_require(is_privileged(c) || status->users[i]->uid == c->uid);
}

static void take_body(struct client *c, const struct waiting *w, const Shuf__Reply *reply)
{
    fuzz_require(!w->needs_privilege || is_privileged(c));
    switch (reply->body_case) {
    case SHUF__REPLY__BODY_RESULT:
        take_result(c, w, reply);
        break;
    case SHUF__REPLY__BODY_INDEX:
        check_index(w, reply->index);
        break;
    case SHUF__REPLY__BODY_LEASES:
        check_leases(c, reply->leases);
        break;
    case SHUF__REPLY__BODY_STATUS_REPLY:
        check_status(c, reply->status_reply);
        break;
    default:
        break;
    }
}

/* After a failure of a request with `give_back`, the lease may be gone or not. */
static void take_reply(struct client *c, const uint8_t *bytes, size_t length)
{
    const Shuf__Reply *reply = shuf__reply_unpack(&arena, bytes, length);
    fuzz_require(reply != NULL);
    if (reply->id == 0) { /* the reply to bytes that are no request */
        fuzz_require(reply->status != SHUF_OK);
        return;
    }
    fuzz_require(c->waits > 0 && reply->id == c->waiting[0].id);
    fuzz_require((reply->status == SHUF_OK) == (*reply->message == '\0'));
    const struct waiting w = c->waiting[0];
    memmove(c->waiting, c->waiting + 1, --c->waits * sizeof *c->waiting);
    c->owed = reply->payload_bytes;
    c->paid = 0;
    c->paid_for.values.kind = VALUES_UNKNOWN;
    fuzz_require(c->owed <= PAYLOAD);
    if (reply->status == SHUF_OK || (w.is_result && w.released))
        forget_released(c, &w);
    if (reply->status == SHUF_OK)
        take_body(c, &w, reply);
}

/* ---- Bytes ---- */

/* Takes the received bytes: the payload first, then complete frames. */
static void take_bytes(struct client *c)
{
    uint8_t *inbox = inboxes[c - clients], *payload = payloads[c - clients];
    size_t at = 0, length;
    for (;;) {
        const size_t left = c->got - at, piece = left < c->owed ? left : c->owed;
        memcpy(payload + c->paid, inbox + at, piece);
        at += piece;
        c->paid += piece;
        c->owed -= piece;
        if (piece > 0 && c->owed == 0)
            check_values(&c->paid_for.values, payload);
        if (c->owed > 0 || c->fd < 0)
            break;
        const enum shuf__frame_result found = shuf__frame_parse(inbox + at, c->got - at, &length);
        fuzz_require(found != SHUF__FRAME_BAD);
        if (found == SHUF__FRAME_PARTIAL)
            break;
        take_reply(c, inbox + at + SHUF__FRAME_HEADER, length);
        at += SHUF__FRAME_HEADER + length;
    }
    memmove(inbox, inbox + at, c->got - at);
    c->got -= at;
}

static void take_descriptors(struct client *c, struct msghdr *message)
{
    for (struct cmsghdr *m = CMSG_FIRSTHDR(message); m; m = CMSG_NXTHDR(message, m))
        if (m->cmsg_level == SOL_SOCKET && m->cmsg_type == SCM_RIGHTS) {
            const size_t count = (m->cmsg_len - CMSG_LEN(0)) / sizeof(int);
            fuzz_require(count == 1 && c->fd_count < CLIENT_WAITING);
            memcpy(&c->fds[c->fd_count++], CMSG_DATA(m), sizeof(int));
        }
}

/* Returns whether any bytes arrived. */
static bool read_some(struct client *c)
{
    union {
        struct cmsghdr aligned;
        uint8_t bytes[CMSG_SPACE(4 * sizeof(int))];
    } control;
    if (c->fd < 0)
        return false;
    struct iovec part = {inboxes[c - clients] + c->got, sizeof *inboxes - c->got};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    const ssize_t got = recvmsg(c->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got > 0) {
        take_descriptors(c, &message);
        c->got += (size_t)got;
        take_bytes(c);
        return true;
    }
    if (got == 0 || errno != EAGAIN)
        client_close(c);
    return got == 0;
}

void client_read(struct client *c)
{
    while (read_some(c))
        ;
}
