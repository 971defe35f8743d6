/* SPDX-License-Identifier: MIT
 *
 * See hostile.h. The end of the file has the table of attacks on shufd.
 */
#include "hostile.h"

#include "message.h"
#include "process.h"
#include "result_message.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum {
    MOST_CONNECTIONS = 2048,
    POLL_MS = 10,
    GREETING_MS = 10000,
};

void batch_add_random(struct batch *batch, size_t size, uint64_t *state)
{
    for (size_t end = batch->size + size; batch->size < end; batch->size++) {
        *state = *state * 6364136223846793005 + 1442695040888963407;
        batch->bytes[batch->size] = (uint8_t)(*state >> 56);
    }
}

/* ---- Connections ---- */

struct process {
    const struct attack *attack;
    struct sockaddr_un address;
    struct attack_counts *counts;
    unsigned count;
    struct pollfd events[MOST_CONNECTIONS];
    size_t at[MOST_CONNECTIONS]; /* in the batch */
    struct batch *batches;       /* one for each connection, or one for all if they are large */
    uint8_t discarded[1 << 16];
};

static struct attack_counts *shared_counts;

/* Opens a connection. Returns -1 if the server's backlog is full. */
static int open_connection(struct process *p)
{
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        die("hostile process: socket: %s", strerror(errno));
    if (connect(fd, (const struct sockaddr *)&p->address, sizeof p->address) != 0) {
        close(fd);
        return -1;
    }
    p->counts->connects++;
    if (p->attack->greet)
        p->attack->greet(fd);
    return fd;
}

static void reopen(struct process *p, unsigned i)
{
    if (p->events[i].fd >= 0) {
        close(p->events[i].fd);
        p->counts->closes++;
    }
    p->at[i] = 0;
    p->events[i].fd = p->attack->closed == RECONNECTS ? open_connection(p) : -1;
}

static struct batch *batch_of(struct process *p, unsigned i)
{
    return &p->batches[p->attack->connections > 500 ? 0 : i];
}

/* Returns false if the server has closed the connection. */
static bool discard_replies(struct process *p, int fd)
{
    ssize_t got;
    while ((got = recv(fd, p->discarded, sizeof p->discarded, MSG_DONTWAIT)) > 0)
        p->counts->received_bytes += (uint64_t)got;
    return got != 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

static bool send_some(struct process *p, unsigned i)
{
    const struct batch *batch = batch_of(p, i);
    const size_t size = p->attack->drip_ms ? 1 : batch->size - p->at[i];
    const ssize_t sent =
        send(p->events[i].fd, batch->bytes + p->at[i], size, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0)
        return errno == EAGAIN || errno == EWOULDBLOCK;
    p->counts->sent_bytes += (uint64_t)sent;
    p->at[i] = (p->at[i] + (size_t)sent) % batch->size;
    return true;
}

static void serve(struct process *p, unsigned i)
{
    bool is_open = p->events[i].fd >= 0;
    if (is_open && p->attack->reading == READS)
        is_open = discard_replies(p, p->events[i].fd);
    if (is_open && p->attack->fill)
        is_open = send_some(p, i);
    if (!is_open)
        reopen(p, i);
}

static short events_of(const struct attack *attack)
{
    const short out = attack->fill && !attack->drip_ms ? POLLOUT : 0;
    return (short)(out | (attack->reading == READS ? POLLIN : 0));
}

static _Noreturn void attack_without_end(struct process *p)
{
    const struct timespec pause = {.tv_nsec = (long)p->attack->drip_ms * 1000000};
    for (;;) {
        if (p->attack->drip_ms)
            nanosleep(&pause, NULL);
        else
            poll(p->events, p->count, POLL_MS);
        for (unsigned i = 0; i < p->count; i++)
            if (p->attack->drip_ms || p->events[i].revents || p->events[i].fd < 0)
                serve(p, i);
    }
}

/* ---- Processes ---- */

static void open_all(struct process *p, const struct attack *attack, unsigned share)
{
    const unsigned count = attack->connections / HOSTILE_PROCESSES;
    const unsigned batches = attack->connections > 500 ? 1 : count;
    const double end = now_ns() + GREETING_MS * 1e6;
    p->batches = mmap(NULL, batches * sizeof *p->batches, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p->batches == MAP_FAILED || count > MOST_CONNECTIONS)
        die("hostile process: no memory");
    for (unsigned i = 0; attack->fill && i < batches; i++)
        attack->fill(&p->batches[i], share * count + i);
    for (p->count = 0; p->count < count; p->count++) {
        int fd;
        while ((fd = open_connection(p)) < 0 && now_ns() < end)
            sched_yield();
        p->events[p->count] = (struct pollfd){.fd = fd, .events = events_of(attack)};
    }
}

static _Noreturn void become_hostile(const struct attack *attack, const char *path, uid_t uid,
                                     unsigned share, int ready)
{
    static struct process p;
    p.attack = attack;
    p.counts = &shared_counts[share];
    p.address.sun_family = AF_UNIX;
    snprintf(p.address.sun_path, sizeof p.address.sun_path, "%s", path);
    if (setgid(uid) || setuid(uid))
        die("hostile process: cannot become user %u", (unsigned)uid);
    if (attack->connections > 0)
        open_all(&p, attack, share);
    if (write(ready, "", 1) != 1)
        _exit(2);
    if (attack->connections == 0)
        for (volatile uint64_t i = 0;; i++)
            ;
    attack_without_end(&p);
}

static void await_ready(int fd)
{
    for (int i = 0; i < HOSTILE_PROCESSES; i++) {
        char byte;
        if (read(fd, &byte, 1) != 1)
            die("hostile process: ended at its start");
    }
}

void hostile_start(const struct attack *attack, const char *socket, uid_t uid,
                   const cpu_set_t *cpus, pid_t pids[HOSTILE_PROCESSES])
{
    int ready[2];
    if (!shared_counts)
        shared_counts = mmap(NULL, HOSTILE_PROCESSES * sizeof *shared_counts,
                             PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared_counts == MAP_FAILED || pipe2(ready, O_CLOEXEC) != 0)
        die("hostile processes: %s", strerror(errno));
    memset(shared_counts, 0, HOSTILE_PROCESSES * sizeof *shared_counts);
    for (unsigned i = 0; i < HOSTILE_PROCESSES; i++) {
        pids[i] = process_fork();
        if (pids[i] != 0)
            continue;
        if (cpus && sched_setaffinity(0, sizeof *cpus, cpus) != 0)
            die("hostile process: processors: %s", strerror(errno));
        become_hostile(attack, socket, uid, i, ready[1]);
    }
    close(ready[1]);
    await_ready(ready[0]);
    close(ready[0]);
}

void hostile_stop(const pid_t pids[HOSTILE_PROCESSES], struct attack_counts *counts)
{
    *counts = (struct attack_counts){0};
    for (int i = 0; i < HOSTILE_PROCESSES; i++) {
        int status;
        if (process_ended(pids[i], &status))
            die("a hostile process has ended, wait status 0x%x", (unsigned)status);
        process_end(pids[i], SIGKILL);
        counts->sent_bytes += shared_counts[i].sent_bytes;
        counts->received_bytes += shared_counts[i].received_bytes;
        counts->connects += shared_counts[i].connects;
        counts->closes += shared_counts[i].closes;
    }
}

/* ---- Attacks on shufd: their requests ---- */

enum {
    FRAME = SHUF__FRAME_HEADER + SHUF__FRAME_MAX,
    REQUESTS = 16,  /* in a batch */
    LEASES = 40,    /* of a connection */
    RELEASED = 200, /* leases in a Release; the last one does not exist */
    PREFETCHES = 4, /* of a connection */
};

static void greet(int fd)
{
    Shuf__Hello hello = SHUF__HELLO__INIT;
    Shuf__Request request = SHUF__REQUEST__INIT;
    uint8_t frame[64];
    hello.version = SHUF__PROTOCOL_VERSION;
    request.body_case = SHUF__REQUEST__BODY_HELLO;
    request.hello = &hello;
    const size_t size = shuf__message_pack(&request.base, frame, sizeof frame);
    (void)!send(fd, frame, size, MSG_NOSIGNAL);
}

static struct shuf__result_message permutation(void)
{
    struct shuf__result_message m;
    shuf__result_message_init(&m, SHUF__RESULT__WHAT_PERMUTE);
    return m;
}

static void send_lease(int fd, uint64_t seed)
{
    Shuf__Transport accept = SHUF__TRANSPORT__TRANSPORT_MEMFD;
    Shuf__Request request = SHUF__REQUEST__INIT;
    struct shuf__result_message permute = permutation();
    uint8_t frame[128];
    permute.permutation.n = 100;
    permute.permutation.seed = seed;
    permute.delivery.accept = &accept;
    permute.delivery.n_accept = 1;
    request.body_case = SHUF__REQUEST__BODY_RESULT;
    request.result = shuf__result_message_link(&permute);
    const size_t size = shuf__message_pack(&request.base, frame, sizeof frame);
    (void)!send(fd, frame, size, MSG_NOSIGNAL);
}

static void greet_and_lease(int fd)
{
    greet(fd);
    for (uint64_t seed = 0; seed < LEASES; seed++)
        send_lease(fd, seed);
}

static void add(struct batch *batch, Shuf__Request *request)
{
    const size_t size = shuf__message_pack(&request->base, batch->bytes + batch->size,
                                           sizeof batch->bytes - batch->size);
    if (size == 0)
        die("hostile request: does not fit");
    batch->size += size;
}

static void fill_with(struct batch *batch, Shuf__Request *request)
{
    for (int i = 0; i < REQUESTS; i++)
        add(batch, request);
}

static void add_permute(struct batch *batch, struct shuf__result_message *permute)
{
    Shuf__Request request = SHUF__REQUEST__INIT;
    request.id = 1;
    request.body_case = SHUF__REQUEST__BODY_RESULT;
    request.result = shuf__result_message_link(permute);
    add(batch, &request);
}

static void fill_status(struct batch *batch, unsigned connection)
{
    Shuf__Status status = SHUF__STATUS__INIT;
    Shuf__Request request = SHUF__REQUEST__INIT;
    (void)connection;
    request.body_case = SHUF__REQUEST__BODY_STATUS;
    request.status = &status;
    fill_with(batch, &request);
}

static void fill_leases(struct batch *batch, unsigned connection)
{
    Shuf__Leases leases = SHUF__LEASES__INIT;
    Shuf__Request request = SHUF__REQUEST__INIT;
    (void)connection;
    request.body_case = SHUF__REQUEST__BODY_LEASES;
    request.leases = &leases;
    fill_with(batch, &request);
}

static void fill_release(struct batch *batch, unsigned connection)
{
    uint64_t ids[RELEASED];
    Shuf__Release release = SHUF__RELEASE__INIT;
    Shuf__Request request = SHUF__REQUEST__INIT;
    (void)connection;
    for (uint64_t i = 0; i < RELEASED; i++)
        ids[i] = i + 1;
    ids[RELEASED - 1] = UINT64_MAX;
    release.lease = ids;
    release.n_lease = RELEASED;
    request.body_case = SHUF__REQUEST__BODY_RELEASE;
    request.release = &release;
    fill_with(batch, &request);
}

static void fill_small(struct batch *batch, unsigned connection)
{
    Shuf__Transport accept = SHUF__TRANSPORT__TRANSPORT_INLINE;
    struct shuf__result_message permute = permutation();
    permute.permutation.n = 1000;
    permute.delivery.accept = &accept;
    permute.delivery.n_accept = 1;
    for (unsigned i = 0; i < REQUESTS; i++) {
        permute.permutation.seed = connection * REQUESTS + i;
        add_permute(batch, &permute);
    }
}

/* Values of a permutation that the daemon finds only by computing all values before them. */
static void add_late_values(struct batch *batch, uint64_t n, uint64_t seed)
{
    Shuf__Transport accept = SHUF__TRANSPORT__TRANSPORT_INLINE;
    struct shuf__result_message permute = permutation();
    shuf__result_message_add_view(&permute, SHUF__PERMUTE__VIEW_SLICE);
    permute.slice.offset = n - 1 - seed % 1000;
    permute.slice.count = 1;
    permute.slice.stride = 1;
    permute.permutation.algorithm = (char *)(uintptr_t) "philox24";
    permute.permutation.n = n;
    permute.permutation.seed = seed;
    permute.delivery.accept = &accept;
    permute.delivery.n_accept = 1;
    add_permute(batch, &permute);
}

static void fill_late(struct batch *batch, unsigned connection)
{
    for (unsigned i = 0; i < REQUESTS; i++)
        add_late_values(batch, 1000000000, connection * REQUESTS + i);
}

static void fill_endless(struct batch *batch, unsigned connection)
{
    for (unsigned i = 0; i < REQUESTS; i++)
        add_late_values(batch, UINT64_C(1) << 62, connection * REQUESTS + i);
}

static void fill_summaries(struct batch *batch, unsigned connection)
{
    struct shuf__result_message permute = permutation();
    permute.permutation.n = 1000000000;
    permute.delivery.fingerprint = true;
    for (unsigned i = 0; i < REQUESTS; i++) {
        permute.permutation.seed = connection * REQUESTS + i;
        add_permute(batch, &permute);
    }
}

static void fill_prefetches(struct batch *batch, unsigned connection)
{
    Shuf__Transport accept = SHUF__TRANSPORT__TRANSPORT_MEMFD;
    struct shuf__result_message permute = permutation();
    permute.permutation.n = 10000000;
    permute.delivery.accept = &accept;
    permute.delivery.n_accept = 1;
    permute.delivery.prefetch = true;
    for (unsigned i = 0; i < PREFETCHES; i++) {
        permute.permutation.seed = connection * PREFETCHES + i;
        add_permute(batch, &permute);
    }
}

/* Gives each connection another of these requests. */
static void fill_mixed(struct batch *batch, unsigned connection)
{
    static void (*const fills[])(struct batch *, unsigned) = {fill_late, fill_endless,
                                                              fill_summaries, fill_prefetches};
    fills[connection % 4](batch, connection);
}

/* Fills the batch with frames of the largest size, whose messages are random bytes. */
static void fill_garbage(struct batch *batch, unsigned connection)
{
    uint64_t state = connection + 1;
    while (batch->size + FRAME <= sizeof batch->bytes) {
        shuf__frame_header(batch->bytes + batch->size, SHUF__FRAME_MAX);
        batch->size += SHUF__FRAME_HEADER;
        batch_add_random(batch, SHUF__FRAME_MAX, &state);
    }
}

/* Fills the batch with a frame whose length is out of range. */
static void fill_bad_frame(struct batch *batch, unsigned connection)
{
    (void)connection;
    memset(batch->bytes, 0xff, 64);
    batch->size = 64;
}

/* ---- Attacks on shufd: the tables ---- */

const struct attack attacks[] = {
    {.name = "busy processes", .connections = 0},
    {.name = "500 idle connections", .connections = 500, .greet = greet},
    {.name = "500 slow connections",
     .connections = 500,
     .greet = greet,
     .fill = fill_small,
     .drip_ms = 10},
    {.name = "500 connections that do not read",
     .connections = 500,
     .greet = greet,
     .fill = fill_small,
     .reading = NEVER_READS},
    {.name = "garbage",
     .connections = 8,
     .greet = greet,
     .fill = fill_garbage,
     .closed = RECONNECTS},
    {.name = "refused connections",
     .connections = 2000,
     .greet = greet,
     .fill = fill_garbage,
     .closed = RECONNECTS},
    {.name = "Release", .connections = 96, .greet = greet_and_lease, .fill = fill_release},
    {.name = "Leases", .connections = 96, .greet = greet_and_lease, .fill = fill_leases},
    {.name = "Status", .connections = 96, .greet = greet_and_lease, .fill = fill_status},
    {.name = "small results", .connections = 96, .greet = greet, .fill = fill_small},
    {.name = "late values, n = 1e9", .connections = 8, .greet = greet, .fill = fill_late},
    {.name = "late values, n = 2^62", .connections = 8, .greet = greet, .fill = fill_endless},
    {.name = "summaries, n = 1e9", .connections = 8, .greet = greet, .fill = fill_summaries},
    {.name = "prefetches, n = 1e7", .connections = 262, .greet = greet, .fill = fill_prefetches},
    {.name = "mixed jobs", .connections = 96, .greet = greet, .fill = fill_mixed},
    {0},
};

const struct attack attacks_on_log[] = {
    {.name = "bad frames, log not read",
     .connections = 8,
     .greet = greet,
     .fill = fill_bad_frame,
     .closed = RECONNECTS},
    {0},
};
