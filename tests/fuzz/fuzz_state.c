/* SPDX-License-Identifier: MIT
 *
 * The daemon's state machine. The input is a script of steps of four clients, such as requests,
 * releases, maps, closes and failing allocations. The daemon's modules serve the clients in this
 * process, with a CPU backend that can run out of memory. After each step the counts of the daemon
 * must agree, and the leased values must be right. At the end no allocation may be left.
 */
#include "backend.h"
#include "fuzz.h"
#include "handlers/service.h"
#include "shuf/primefold.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    CLIENTS = 4,
    LEASES = 16, /* the daemon's limit; prefetches and copies do not count */
    WAITING = 8, /* unanswered requests of a client */
    MAPS = 8,    /* of results that a client has released */
    STEPS = 60,
    PAYLOAD = 1 << 20,
    HANGS_S = 20,
};

/* ---- The backend -------------------------------------------------------------------- */

static struct shuf__backend_ops fake_ops;
static atomic_uint refusals; /* allocations that will fail */

static shuf_status fake_alloc(struct shuf__backend *backend, enum shuf__memory kind, uint64_t bytes,
                              struct shuf__block *block, struct shuf__error *error)
{
    unsigned left = atomic_load(&refusals);
    while (left > 0)
        if (atomic_compare_exchange_weak(&refusals, &left, left - 1)) {
            *block = (struct shuf__block){.kind = kind, .fd = -1};
            return shuf__fail(error, SHUF_NO_MEMORY, "the device is full");
        }
    return shuf__cpu_ops.alloc(backend, kind, bytes, block, error);
}

static shuf_status fake_memory(struct shuf__backend *backend, enum shuf__memory kind,
                               uint64_t *available, uint64_t *total, struct shuf__error *error)
{
    (void)backend;
    (void)kind;
    (void)error;
    *total = UINT64_C(1) << 30;
    *available = *total;
    return SHUF_OK;
}

/* Replaces kernels/backend.c. */
shuf_status shuf__backend_open(const char *spec, unsigned threads, struct shuf__backend **backend,
                               struct shuf__error *error)
{
    (void)spec;
    const shuf_status status = shuf__cpu_ops.open(NULL, threads, backend, error);
    if (status == SHUF_OK)
        (*backend)->ops = &fake_ops;
    return status;
}

/* ---- The daemon ---------------------------------------------------------------------- */

static struct shuf__config config;
static struct shuf__log logging;
static uv_loop_t loop;
static uv_prepare_t serving;
static struct shuf__service service;
static struct shuf__engine *engine;

static void on_prepare(uv_prepare_t *handle)
{
    (void)handle;
    shuf__sessions_serve(&service.sessions);
}

static void on_idle(void *context)
{
    (void)context;
}

static void on_device_failed(void *context, const struct shuf__error *error)
{
    (void)context;
    fprintf(stderr, "the device failed: %s\n", error->text);
    abort();
}

static void on_closed(struct shuf__sessions *sessions)
{
    (void)sessions;
}

static void on_workers_done(struct shuf__allocations *allocations)
{
    (void)allocations;
}

static void set(const char *key, const char *value)
{
    struct shuf__error error;
    fuzz_require(shuf__config_set(&config, key, value, &error) == SHUF_OK);
}

static void set_memory(const char *memory, const char *cache)
{
    struct shuf__error error;
    set("host_memory", memory);
    set("host_cache", cache);
    shuf__service_configure(&service);
    fuzz_require(shuf__allocations_measure(&service.allocations, SHUF__MEMORY_MEMFD, &error) ==
                 SHUF_OK);
    shuf__pool_hold_to_limit(&service.pool, SHUF__SIDE_HOST);
}

static void start_engine(void)
{
    struct shuf__error error = {0};
    const struct shuf__engine_options options = {.backend = "fake",
                                                 .threads = 1,
                                                 .queue = 4,
                                                 .idle = on_idle,
                                                 .device_failed = on_device_failed};
    fuzz_require(shuf__engine_start(&engine, &loop, &options, &error) == SHUF_OK);
    shuf__service_set_engine(&service, engine);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    fake_ops = shuf__cpu_ops;
    fake_ops.alloc = fake_alloc;
    fake_ops.memory = fake_memory;
    shuf__config_init(&config);
    shuf__log_init(&logging, SHUF__LOG_ERROR);
    set("leases", "16");
    set("spin_time", "0");
    fuzz_require(uv_loop_init(&loop) == 0);
    uv_prepare_init(&loop, &serving);
    uv_prepare_start(&serving, on_prepare);
    shuf__service_init(&service, &loop, &config, &logging);
    service.sessions.closed = on_closed;
    service.allocations.workers_done = on_workers_done;
    service.allocations.max_count = 64;
    start_engine();
    shuf__service_started(&service, "/fuzz.sock");
    return 0;
}

/* ---- The clients ---------------------------------------------------------------------- */

/* Values that a client can see: those of `permutation`, row after row. */
struct mapping {
    uint64_t lease, block;
    const void *memory; /* NULL: not mapped */
    size_t bytes;       /* of the mapping */
    bool is_permutation, is_buffer;
    uint64_t n, seed, rows;
    unsigned width;
    uint64_t size; /* bytes of a buffer */
};

struct waiting {
    uint64_t id;
    bool is_result, maps, prefetch;
    struct mapping asked;
    uint64_t released; /* a lease; 0: none */
    bool everything;
};

static struct client {
    int fd; /* -1: closed */
    uint64_t last_id;
    struct waiting waiting[WAITING];
    unsigned waits;
    struct mapping leases[LEASES], released[MAPS];
    unsigned held, maps;
    uint64_t prefetched; /* the last one; the daemon may have ended it */
    size_t got;          /* of its inbox */
    size_t paid, owed;   /* of its payload */
    struct mapping paid_for;
    int fds[WAITING];
    unsigned fd_count;
} clients[CLIENTS];

static uint8_t inboxes[CLIENTS][SHUF__FRAME_HEADER + SHUF__FRAME_MAX];
static uint8_t payloads[CLIENTS][PAYLOAD];

static struct shuf__arena arena;

static void unmap(struct mapping *mapping)
{
    if (mapping->memory)
        munmap((void *)(uintptr_t)mapping->memory, mapping->bytes);
    mapping->memory = NULL;
}

static void check_values(const struct mapping *m, const void *memory)
{
    if (!m->is_permutation || !memory)
        return;
    for (uint64_t row = 0; row < m->rows; row++) {
        const shuf_primefold f = shuf_primefold_make(m->n, m->seed, row);
        const uint64_t step = m->n < 64 ? 1 : m->n / 29;
        for (uint64_t i = 0; i < m->n; i += step) {
            uint64_t value = 0;
            memcpy(&value, (const char *)memory + (row * m->n + i) * m->width, m->width);
            fuzz_require(value == shuf_primefold_forward(&f, i));
        }
    }
}

static void close_client(struct client *c)
{
    for (unsigned i = 0; i < c->held; i++)
        unmap(&c->leases[i]);
    for (unsigned i = 0; i < c->maps; i++)
        unmap(&c->released[i]);
    for (unsigned i = 0; i < c->fd_count; i++)
        close(c->fds[i]);
    if (c->fd >= 0)
        close(c->fd);
    *c = (struct client){.fd = -1};
}

static void keep_mapped(struct client *c, struct mapping *mapping)
{
    if (c->maps == MAPS || !mapping->memory) {
        unmap(mapping);
        return;
    }
    c->released[c->maps++] = *mapping;
}

static void forget_lease(struct client *c, unsigned index)
{
    check_values(&c->leases[index], c->leases[index].memory);
    keep_mapped(c, &c->leases[index]);
    c->leases[index] = c->leases[--c->held];
}

static void forget_released(struct client *c, const struct waiting *w)
{
    for (unsigned i = c->held; i-- > 0;)
        if (w->everything || c->leases[i].lease == w->released)
            forget_lease(c, i);
}

/* ---- Replies --------------------------------------------------------------------------- */

static const void *map_of_block(const struct client *c, uint64_t block, size_t *bytes)
{
    for (unsigned i = 0; i < c->held; i++)
        if (c->leases[i].block == block && c->leases[i].memory) {
            *bytes = c->leases[i].bytes;
            return c->leases[i].memory;
        }
    return NULL;
}

static void take_lease(struct client *c, const struct waiting *w, const Shuf__ResultReply *result,
                       int fd)
{
    fuzz_require(c->held < LEASES);
    struct mapping *m = &c->leases[c->held++];
    *m = w->asked;
    m->lease = result->lease;
    m->block = result->block;
    if (result->transport == SHUF__TRANSPORT__TRANSPORT_MEMFD)
        fuzz_require(result->block != 0 && result->bytes <= result->block_bytes);
    else /* a buffer that only Write fills */
        fuzz_require(m->is_buffer && result->transport == SHUF__TRANSPORT__TRANSPORT_INLINE);
    if (fd >= 0 && w->maps) {
        void *memory = mmap(NULL, result->block_bytes, PROT_READ, MAP_SHARED, fd, 0);
        fuzz_require(memory != MAP_FAILED);
        m->memory = memory;
        m->bytes = result->block_bytes;
        check_values(m, memory);
        for (uint64_t i = 0; m->is_buffer && i < m->size; i += 97)
            fuzz_require(((const uint8_t *)memory)[i] == 0);
    } else if (fd < 0) {
        size_t bytes = 0;
        check_values(m, map_of_block(c, result->block, &bytes));
    }
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
    if (w->prefetch && result->lease != 0)
        c->prefetched = result->lease;
    else if (result->lease != 0)
        take_lease(c, w, result, fd);
    if (fd >= 0)
        close(fd);
    fuzz_require(reply->payload_bytes == 0 || reply->payload_bytes == result->bytes);
    c->paid_for = w->asked;
}

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
    c->paid_for.is_permutation = false;
    fuzz_require(c->owed <= PAYLOAD);
    if (reply->status == SHUF_OK)
        forget_released(c, &w);
    else if (w.is_result && w.released) /* the lease may be gone, or not */
        for (unsigned i = c->held; i-- > 0;)
            if (c->leases[i].lease == w.released)
                forget_lease(c, i);
    if (reply->status == SHUF_OK && reply->body_case == SHUF__REPLY__BODY_RESULT)
        take_result(c, &w, reply);
}

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
            check_values(&c->paid_for, payload);
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
            fuzz_require(count == 1 && c->fd_count < WAITING);
            memcpy(&c->fds[c->fd_count++], CMSG_DATA(m), sizeof(int));
        }
}

/* Returns whether any bytes arrived. */
static bool read_client(struct client *c)
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
        close_client(c);
    return got == 0;
}

/* ---- Books -------------------------------------------------------------------------------- */

static void check_allocations(void)
{
    const struct shuf__allocations *all = &service.allocations;
    const struct shuf__allocation *allocation;
    uint64_t used[SHUF__SIDES] = {0}, count = 0, buffers = 0, pending = 0, uncommitted = 0;
    LIST_FOREACH (allocation, &all->list, link) {
        used[shuf__side_of(allocation->kind)] += allocation->bytes;
        fuzz_require(allocation->committed <= allocation->bytes);
        uncommitted += allocation->bytes - allocation->committed;
        count++;
        buffers += allocation->buffer;
        pending += allocation->pending_free;
    }
    fuzz_require(count == all->count && buffers == all->buffers);
    fuzz_require(pending == all->pending_free_count);
    fuzz_require(uncommitted == all->budgets[SHUF__SIDE_HOST].uncommitted);
    fuzz_require(all->budgets[SHUF__SIDE_DEVICE].unconfirmed == 0);
    for (int side = 0; side < SHUF__SIDES; side++)
        fuzz_require(used[side] == all->budgets[side].used);
}

static void check_leases(void)
{
    const struct shuf__session *session;
    const struct shuf__lease *lease;
    uint64_t count = 0, sessions = 0;
    LIST_FOREACH (session, &service.sessions.list, link) {
        uint64_t held = 0, prefetched = 0;
        LIST_FOREACH (lease, &session->leases.list, of_owner) {
            fuzz_require(lease->entry->refs > 0 && !lease->releasing && !lease->prefetch);
            fuzz_require(lease->entry->ready && lease->entry->allocation);
            held++;
        }
        LIST_FOREACH (lease, &session->leases.prefetched, of_owner) {
            fuzz_require(lease->entry->refs > 0 && lease->prefetch);
            prefetched++;
        }
        fuzz_require(held == session->leases.leased && held <= LEASES);
        fuzz_require(prefetched == session->leases.prefetches && prefetched <= SHUF__PREFETCHES);
        count += held + prefetched;
        sessions++;
    }
    fuzz_require(count == service.leases.table.count && sessions == service.sessions.count);
}

static void check_books(void)
{
    check_allocations();
    check_leases();
    for (int i = 0; i < CLIENTS; i++)
        for (unsigned k = 0; k < clients[i].held; k++)
            check_values(&clients[i].leases[k], clients[i].leases[k].memory);
}

static bool is_quiet(void)
{
    if (!shuf__engine_is_idle(engine) || service.allocations.worker_blocks > 0 ||
        !shuf__ready_is_empty(&service.sessions.ready))
        return false;
    for (int i = 0; i < CLIENTS; i++)
        if (clients[i].fd >= 0 && clients[i].waits > 0)
            return false;
    return true;
}

static void turn(void)
{
    uv_run(&loop, UV_RUN_NOWAIT);
    for (int i = 0; i < CLIENTS; i++)
        while (read_client(&clients[i]))
            ;
}

/* Every request is answered. */
static void settle(void)
{
    const time_t end = time(NULL) + HANGS_S;
    for (int quiet = 0; quiet < 3; quiet = is_quiet() ? quiet + 1 : 0) {
        turn();
        if (!shuf__engine_is_idle(engine))
            usleep(20);
        fuzz_require(time(NULL) < end);
    }
}

/* ---- Steps --------------------------------------------------------------------------------- */

static struct client *draw_client(struct fuzz_bytes *bytes)
{
    return &clients[fuzz_u8(bytes) % CLIENTS];
}

static void send_request(struct client *c, Shuf__Request *request, const struct waiting *waiting)
{
    static uint8_t out[SHUF__FRAME_HEADER + SHUF__FRAME_MAX];
    if (c->fd < 0 || c->waits == WAITING)
        return;
    request->id = ++c->last_id;
    const size_t size = shuf__message_pack(&request->base, out, sizeof out);
    fuzz_require(size > 0);
    if (send(c->fd, out, size, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)size) {
        close_client(c);
        return;
    }
    c->waiting[c->waits] = *waiting;
    c->waiting[c->waits++].id = request->id;
}

static void open_client(struct fuzz_bytes *bytes)
{
    static char name[] = "fuzz";
    struct client *c = draw_client(bytes);
    int ends[2];
    if (c->fd >= 0)
        return;
    fuzz_require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
    c->fd = ends[0];
    shuf__session_open(&service.sessions, ends[1]);
    Shuf__Hello hello = SHUF__HELLO__INIT;
    Shuf__Request request = SHUF__REQUEST__INIT;
    hello.version = fuzz_u8(bytes) == 0xff ? 2 : SHUF__PROTOCOL_VERSION;
    hello.client = name;
    request.body_case = SHUF__REQUEST__BODY_HELLO;
    request.hello = &hello;
    send_request(c, &request, &(struct waiting){0});
}

static void end_client(struct fuzz_bytes *bytes)
{
    close_client(draw_client(bytes));
}

/* The id of a lease of the client, of its prefetched lease, or of no lease. */
static uint64_t draw_lease(const struct client *c, struct fuzz_bytes *bytes)
{
    const uint8_t number = fuzz_u8(bytes);
    if (number >= 250)
        return number;
    return c->held > 0 && number < 220 ? c->leases[number % c->held].lease : c->prefetched;
}

/* The fields that more than one of Permute, Stream, Shuffle and Allocate have. */
struct common {
    Shuf__Transport accept[2];
    size_t accepts;
    bool fingerprint, prefetch, gives_back;
    Shuf__Release release;
    uint64_t lease;
};

static void draw_common(const struct client *c, struct fuzz_bytes *bytes, struct common *common,
                        struct waiting *w)
{
    const uint8_t flags = fuzz_u8(bytes);
    *common = (struct common){.fingerprint = flags & 1,
                              .prefetch = (flags & 6) == 6,
                              .gives_back = (flags & 24) == 24,
                              .release = SHUF__RELEASE__INIT};
    if (flags & 32)
        common->accept[common->accepts++] = SHUF__TRANSPORT__TRANSPORT_INLINE;
    if (flags & 64)
        common->accept[common->accepts++] = SHUF__TRANSPORT__TRANSPORT_MEMFD;
    if (common->gives_back) {
        common->lease = w->released = draw_lease(c, bytes);
        common->release.n_lease = 1;
        common->release.lease = &common->lease;
    }
    w->maps = flags & 128;
    w->is_result = true;
    w->prefetch = common->prefetch;
}

static void permute(struct fuzz_bytes *bytes)
{
    static const uint64_t sizes[] = {1, 10, 500, 1000, 4000, 5000, 20000};
    static char names[][16] = {"primefold", "philox24", "lcg"};
    struct client *c = draw_client(bytes);
    struct waiting w = {0};
    struct common common;
    Shuf__Permute body = SHUF__PERMUTE__INIT;
    Shuf__Request request = SHUF__REQUEST__INIT;
    const uint8_t kind = fuzz_u8(bytes);
    draw_common(c, bytes, &common, &w);
    body.algorithm = names[kind % 4 == 3 ? 0 : kind % 4];
    body.n = sizes[fuzz_u8(bytes) % (sizeof sizes / sizeof *sizes)];
    body.seed = fuzz_u8(bytes) % 3;
    body.epochs = kind & 16 ? 2 : 1;
    body.dtype = kind & 32 ? SHUF__DTYPE__DTYPE_U64 : SHUF__DTYPE__DTYPE_U32;
    body.accept = common.accept;
    body.n_accept = common.accepts;
    body.fingerprint = common.fingerprint;
    body.prefetch = common.prefetch;
    body.give_back = common.gives_back ? &common.release : NULL;
    w.asked = (struct mapping){.is_permutation = body.algorithm == names[0],
                               .n = body.n,
                               .seed = body.seed,
                               .rows = body.epochs,
                               .width = kind & 32 ? 8 : 4};
    request.body_case = SHUF__REQUEST__BODY_PERMUTE;
    request.permute = &body;
    send_request(c, &request, &w);
}

static void stream(struct fuzz_bytes *bytes)
{
    struct client *c = draw_client(bytes);
    struct waiting w = {0};
    struct common common;
    Shuf__Stream body = SHUF__STREAM__INIT;
    Shuf__Request request = SHUF__REQUEST__INIT;
    draw_common(c, bytes, &common, &w);
    const uint8_t kind = fuzz_u8(bytes);
    body.distribution = kind & 1 ? SHUF__DISTRIBUTION__DISTRIBUTION_GAUSS
                                 : SHUF__DISTRIBUTION__DISTRIBUTION_UNIFORM;
    body.std = kind & 1;
    body.count = 1 + fuzz_u8(bytes) * UINT64_C(40);
    body.seed = kind >> 6;
    body.sums = kind & 2;
    body.accept = common.accept;
    body.n_accept = common.accepts;
    body.fingerprint = common.fingerprint;
    body.prefetch = common.prefetch;
    body.give_back = common.gives_back ? &common.release : NULL;
    request.body_case = SHUF__REQUEST__BODY_STREAM;
    request.stream = &body;
    send_request(c, &request, &w);
}

static void allocate(struct fuzz_bytes *bytes)
{
    struct client *c = draw_client(bytes);
    struct waiting w = {0};
    struct common common;
    Shuf__Allocate body = SHUF__ALLOCATE__INIT;
    Shuf__Request request = SHUF__REQUEST__INIT;
    draw_common(c, bytes, &common, &w);
    body.bytes = 1 + fuzz_u8(bytes) * UINT64_C(321);
    body.accept = common.accept;
    body.n_accept = common.accepts;
    body.give_back = common.gives_back ? &common.release : NULL;
    w.asked = (struct mapping){.is_buffer = true, .size = body.bytes};
    request.body_case = SHUF__REQUEST__BODY_ALLOCATE;
    request.allocate = &body;
    send_request(c, &request, &w);
}

static void write_buffer(struct fuzz_bytes *bytes)
{
    static uint8_t data[300];
    struct client *c = draw_client(bytes);
    Shuf__Write body = SHUF__WRITE__INIT;
    Shuf__Request request = SHUF__REQUEST__INIT;
    body.lease = draw_lease(c, bytes);
    body.offset = fuzz_u8(bytes) * UINT64_C(17);
    body.data = (ProtobufCBinaryData){fuzz_u8(bytes) + 1u, data};
    memset(data, 0xa5, sizeof data);
    request.body_case = SHUF__REQUEST__BODY_WRITE;
    request.write = &body;
    send_request(c, &request, &(struct waiting){0});
}

static void shuffle(struct fuzz_bytes *bytes)
{
    struct client *c = draw_client(bytes);
    struct waiting w = {0};
    struct common common;
    Shuf__Shuffle body = SHUF__SHUFFLE__INIT;
    Shuf__Request request = SHUF__REQUEST__INIT;
    draw_common(c, bytes, &common, &w);
    body.lease = draw_lease(c, bytes);
    body.n = 1 + fuzz_u8(bytes) * UINT64_C(4);
    body.record = 1 + fuzz_u8(bytes) % 16;
    body.inverse = common.fingerprint;
    body.accept = common.accept;
    body.n_accept = common.accepts;
    body.give_back = common.gives_back ? &common.release : NULL;
    request.body_case = SHUF__REQUEST__BODY_SHUFFLE;
    request.shuffle = &body;
    send_request(c, &request, &w);
}

static void release(struct fuzz_bytes *bytes)
{
    struct client *c = draw_client(bytes);
    struct waiting w = {0};
    Shuf__Release body = SHUF__RELEASE__INIT;
    Shuf__Request request = SHUF__REQUEST__INIT;
    const uint8_t kind = fuzz_u8(bytes);
    uint64_t leases[2], block = 0;
    leases[0] = leases[1] = w.released = draw_lease(c, bytes);
    body.lease = leases;
    body.n_lease = kind % 8 == 0 ? 2 : kind % 8 == 1 ? 0 : 1; /* twice the same fails */
    body.unmapped = &block;
    body.n_unmapped = kind % 2;
    body.everything = w.everything = kind % 8 == 7;
    if (body.n_lease == 0)
        w.released = 0;
    if (c->maps > 0 && body.n_unmapped) {
        block = c->released[--c->maps].block;
        unmap(&c->released[c->maps]);
    }
    request.body_case = SHUF__REQUEST__BODY_RELEASE;
    request.release = &body;
    send_request(c, &request, &w);
}

static void look_up(struct fuzz_bytes *bytes)
{
    uint64_t at[3];
    struct client *c = draw_client(bytes);
    Shuf__Index body = SHUF__INDEX__INIT;
    Shuf__Request request = SHUF__REQUEST__INIT;
    static char names[][16] = {"primefold", "philox24", "lcg"};
    const uint8_t kind = fuzz_u8(bytes);
    body.algorithm = names[kind % 3];
    body.n = kind & 4 ? 40000 : 100; /* the larger one has a rank index */
    body.inverse = kind & 8;
    body.at = at;
    body.n_at = kind >> 4 & 3;
    for (int i = 0; i < 3; i++)
        at[i] = fuzz_u8(bytes) * body.n / 255;
    request.body_case = SHUF__REQUEST__BODY_INDEX;
    request.index = &body;
    send_request(c, &request, &(struct waiting){0});
}

static void ask(struct fuzz_bytes *bytes)
{
    struct client *c = draw_client(bytes);
    Shuf__Drop drop = SHUF__DROP__INIT;
    Shuf__Status status = SHUF__STATUS__INIT;
    Shuf__Leases leases = SHUF__LEASES__INIT;
    Shuf__Metrics metrics = SHUF__METRICS__INIT;
    Shuf__Request request = SHUF__REQUEST__INIT;
    switch (fuzz_u8(bytes) % 4) {
    case 0:
        request.body_case = SHUF__REQUEST__BODY_DROP;
        request.drop = &drop;
        break;
    case 1:
        request.body_case = SHUF__REQUEST__BODY_STATUS;
        request.status = &status;
        break;
    case 2:
        request.body_case = SHUF__REQUEST__BODY_LEASES;
        request.leases = &leases;
        leases.after = draw_lease(c, bytes);
        break;
    default:
        request.body_case = SHUF__REQUEST__BODY_METRICS;
        request.metrics = &metrics;
    }
    send_request(c, &request, &(struct waiting){0});
}

/* Sends some bytes of the script itself, and closes the client. Skips clients that wait for
 * replies, because those replies would be lost. */
static void send_garbage(struct fuzz_bytes *bytes)
{
    struct client *c = draw_client(bytes);
    const size_t size = fuzz_u8(bytes) % 32, there = size < bytes->left ? size : bytes->left;
    if (c->fd < 0 || c->waits > 0)
        return;
    if (there > 0)
        send(c->fd, bytes->at, there, MSG_NOSIGNAL | MSG_DONTWAIT);
    turn();
    close_client(c);
}

static void refuse_memory(struct fuzz_bytes *bytes)
{
    atomic_store(&refusals, fuzz_u8(bytes) % 4);
}

static void change_memory(struct fuzz_bytes *bytes)
{
    static const char *const sizes[] = {"0", "64Ki", "256Ki", "1Mi", "8Mi"};
    const uint8_t kind = fuzz_u8(bytes);
    set_memory(sizes[1 + kind % 4], sizes[kind / 4 % 5]);
}

static void unmap_released(struct fuzz_bytes *bytes)
{
    struct client *c = draw_client(bytes);
    if (c->maps > 0)
        unmap(&c->released[--c->maps]);
    shuf__allocations_sweep(&service.allocations);
}

/* ---- The script ------------------------------------------------------------------------------ */

static void pause_loop(struct fuzz_bytes *bytes)
{
    for (int turns = fuzz_u8(bytes) % 4; turns > 0; turns--)
        turn();
}

static void (*const steps[])(struct fuzz_bytes *) = {
    permute,    permute, permute,    permute,      stream,        open_client,   open_client,
    end_client, release, release,    allocate,     write_buffer,  shuffle,       look_up,
    ask,        ask,     pause_loop, send_garbage, change_memory, refuse_memory, unmap_released};

enum { STEP_KINDS = sizeof steps / sizeof *steps };

/* Closes all clients and drops all idle results. Then checks that no allocation is left. */
static void check_end(void)
{
    for (int i = 0; i < CLIENTS; i++)
        close_client(&clients[i]);
    atomic_store(&refusals, 0);
    settle();
    fuzz_require(service.sessions.count == 0 && service.leases.table.count == 0);
    shuf__pool_clear(&service.pool);
    settle();
    for (int i = 0; i < 3 && service.allocations.count > 0; i++) {
        shuf__allocations_sweep(&service.allocations);
        settle();
    }
    check_books();
    fuzz_require(service.allocations.count == 0);
    fuzz_require(service.allocations.budgets[SHUF__SIDE_HOST].releasing == 0);
    fuzz_require(service.allocations.budgets[SHUF__SIDE_HOST].unconfirmed == 0);
    fuzz_require(service.cache.tree == NULL);
}

/* If the highest bit of a step is set, the next steps run while the daemon still works on it. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_bytes bytes = {data, size};
    for (int i = 0; i < CLIENTS; i++)
        clients[i].fd = -1;
    set_memory("1Mi", "256Ki");
    open_client(&(struct fuzz_bytes){0});
    for (int i = 0; i < STEPS && bytes.left > 0; i++) {
        const uint8_t step = fuzz_u8(&bytes);
        steps[(step & 0x7f) % STEP_KINDS](&bytes);
        if (step & 0x80)
            continue;
        settle();
        check_books();
    }
    settle();
    check_end();
    return 0;
}
