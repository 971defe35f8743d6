/* SPDX-License-Identifier: MIT
 *
 * See hostile.h. Each process runs a poll loop over its share of the connections.
 */
#include "hostile.h"

#include "clock.h"
#include "process.h"

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
