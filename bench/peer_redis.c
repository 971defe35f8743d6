/* SPDX-License-Identifier: MIT
 *
 * The rows of bench_bystander for a redis-server: the bystander's small requests beside attacks of
 * the same kinds. One thread of Redis serves all clients, as the loop of shufd does.
 */
#include "bystander_rows.h"
#include "process.h"
#include "redis.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

/* ---- Attacks ---- */

/* Those of hostile.c, as far as Redis has a counterpart: GET for a small result, INFO for Status.
 */

/* The request of the bystander. Its reply is a value of 4 * BYSTANDER_N bytes. */
#define REDIS_GET "*2\r\n$3\r\nGET\r\n$5\r\nvalue\r\n"

enum { REQUESTS = 16 /* in a batch */ };

static void add(struct batch *batch, const char *text)
{
    memcpy(batch->bytes + batch->size, text, strlen(text));
    batch->size += strlen(text);
}

static void fill_get(struct batch *batch, unsigned connection)
{
    (void)connection;
    for (int i = 0; i < REQUESTS; i++)
        add(batch, REDIS_GET);
}

static void fill_info(struct batch *batch, unsigned connection)
{
    (void)connection;
    for (int i = 0; i < REQUESTS; i++)
        add(batch, "*1\r\n$4\r\nINFO\r\n");
}

static void fill_garbage(struct batch *batch, unsigned connection)
{
    uint64_t state = connection + 1;
    batch_add_random(batch, sizeof batch->bytes, &state);
}

/* Fills the batch with a request whose length is out of range. */
static void fill_bad_frame(struct batch *batch, unsigned connection)
{
    (void)connection;
    add(batch, "*1\r\n$99999999999\r\n");
}

/* Redis closes the connections that exceed its memory for clients (options below). So connections
 * with large replies reconnect, else the attack would end. */
static const struct attack redis_attacks[] = {
    {.name = "redis: 500 idle connections", .connections = 500},
    {.name = "redis: 500 slow connections", .connections = 500, .fill = fill_get, .drip_ms = 10},
    {.name = "redis: 500 connections that do not read",
     .connections = 500,
     .fill = fill_get,
     .reading = NEVER_READS,
     .closed = RECONNECTS},
    {.name = "redis: garbage", .connections = 8, .fill = fill_garbage, .closed = RECONNECTS},
    {.name = "redis: refused connections",
     .connections = 2000,
     .fill = fill_garbage,
     .closed = RECONNECTS},
    {.name = "redis: INFO", .connections = 96, .fill = fill_info, .closed = RECONNECTS},
    {.name = "redis: small results", .connections = 96, .fill = fill_get, .closed = RECONNECTS},
    {0},
};

/* Redis logs no protocol errors at the level "notice", so its log does not fill. */
static const struct attack redis_attacks_on_log[] = {
    {.name = "redis: bad frames, log not read",
     .connections = 8,
     .fill = fill_bad_frame,
     .closed = RECONNECTS},
    {0},
};

#define SET "*3\r\n$3\r\nSET\r\n$5\r\nvalue\r\n"
#define HEADER "$4000\r\n"
#define END "\r\n"

enum {
    VALUE = 4 * BYSTANDER_N,
    BEFORE = sizeof HEADER - 1,
    REPLY = BEFORE + VALUE + sizeof END - 1,
};

_Static_assert(VALUE == 4000, "HEADER has the size of the value");

/* Redis counts the connections of all users together. Beside one connection of the bystander, shufd
 * admits 671 of another user by default: 75% (user_clients) of 1024 - 2 * 64 - 1.
 *
 * By default Redis does not limit the memory for replies, so some attacks would use up the memory
 * of the machine. */
static const char *const options[] = {
    "--unixsocketperm", "777",    "--maxclients", "672", "--maxmemory-clients", "1gb",
    "--loglevel",       "notice", NULL,
};

/* ---- The bystander ---- */

/* Makes the reply to REDIS_GET. */
static void make_reply(uint8_t reply[REPLY])
{
    memcpy(reply, HEADER, BEFORE);
    for (int i = 0; i < VALUE; i++)
        reply[BEFORE + i] = (uint8_t)(i * 31 + i / 256);
    memcpy(reply + BEFORE + VALUE, END, sizeof END - 1);
}

static void check(const uint8_t reply[REPLY], bool checks_value)
{
    uint8_t expected[REPLY];
    make_reply(expected);
    if (memcmp(reply, expected, checks_value ? REPLY : BEFORE) != 0)
        die("redis: a wrong reply to GET");
}

/* Returns false if the reply is missing or too short. */
static bool request_once(int fd, struct samples *samples, double *ns)
{
    uint8_t reply[REPLY];
    const bool checks_value = samples->count % BYSTANDER_CHECKED == 0;
    ssize_t got = -1;
    const double start = now_ns();
    if (send(fd, REDIS_GET, sizeof REDIS_GET - 1, MSG_NOSIGNAL) > 0)
        got = recv(fd, reply, sizeof reply, MSG_WAITALL);
    *ns = now_ns() - start;
    if (got == REPLY) {
        check(reply, checks_value);
        return true;
    }
    samples->failures++;
    snprintf(samples->failure, sizeof samples->failure, "GET: got %zd bytes, expected %d%s%s", got,
             REPLY, got < 0 ? ": " : "", got < 0 ? strerror(errno) : "");
    return false;
}

/* The warm-up ends after `run_ns` at the latest, because a request can take seconds. After a
 * failure the connection cannot be used any more. */
static void request_all(const void *server, double run_ns, struct samples *samples)
{
    const int *fd = server;
    bool is_open = true;
    double ns = 0, end = now_ns() + run_ns;
    for (int i = 0; i < BYSTANDER_WARM_UP && is_open && now_ns() < end; i++)
        is_open = request_once(*fd, samples, &ns);
    end = now_ns() + run_ns;
    do {
        is_open = is_open && request_once(*fd, samples, &ns);
        samples->ns[samples->count++] = ns;
    } while (is_open && samples->count < BYSTANDER_SAMPLES && now_ns() < end);
}

/* Redis has no limit of connections of one user, so the bystander can connect only before the
 * attack. It has one blocking connection. */
static int connect_bystander(const struct redis *redis)
{
    const struct timeval timeout = {.tv_sec = BYSTANDER_TIMEOUT_MS / 1000};
    const int fd = redis_connect(redis);
    if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout) != 0)
        die("redis: timeout: %s", strerror(errno));
    return fd;
}

/* ---- Rows ---- */

static double idle_p99;

static void idle_row(const struct bench *bench, const struct redis *redis)
{
    const int fd = connect_bystander(redis);
    bench_measure_requests(bench, "redis: idle", request_all, &fd, &idle_p99);
    close(fd);
}

static void attack_row(const struct bench *bench, const struct attack *attack,
                       const struct redis *redis)
{
    pid_t pids[HOSTILE_PROCESSES];
    const int fd = connect_bystander(redis);
    bench_start_attack(bench, attack, redis->socket, pids);
    bench_measure_requests(bench, attack->name, request_all, &fd, &idle_p99);
    bench_stop_attack(bench, attack->name, pids);
    close(fd);
}

/* The reply to REDIS_GET is also the end of the request that sets the value. */
static void set_value(const struct redis *redis)
{
    uint8_t request[sizeof SET - 1 + REPLY];
    char reply[5];
    const int fd = connect_bystander(redis);
    memcpy(request, SET, sizeof SET - 1);
    make_reply(request + sizeof SET - 1);
    if (send(fd, request, sizeof request, MSG_NOSIGNAL) != sizeof request ||
        recv(fd, reply, sizeof reply, MSG_WAITALL) != sizeof reply ||
        memcmp(reply, "+OK\r\n", sizeof reply) != 0)
        die("redis: cannot set the value");
    close(fd);
}

/* Measures all rows of a table against a new server with this log. */
static void all_rows(const struct bench *bench, const char *program, const struct attack *rows,
                     const char *log)
{
    struct redis redis;
    redis_start(&redis, program, options, log);
    if (bench->has_groups)
        group_join(GROUP_SERVICES, redis.pid);
    bench_run_first(bench, redis.pid);
    set_value(&redis);
    if (idle_p99 == 0)
        idle_row(bench, &redis);
    for (; rows->name; rows++)
        if (bench_selects(bench, rows))
            attack_row(bench, rows, &redis);
    redis_stop(&redis);
}

void peer_redis_rows(const struct bench *bench, const char *program)
{
    if (!redis_have(bench->report, program))
        return;
    all_rows(bench, program, redis_attacks, process_file("redis.log"));
    all_rows(bench, program, redis_attacks_on_log, process_unread_file("redis-unread.log"));
}
