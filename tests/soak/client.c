/* SPDX-License-Identifier: MIT
 *
 * One client of an endurance run. It makes calls of its role until SIGTERM, and compares their
 * values with the inline C. A call may only succeed, be refused as BUSY, or end as the client
 * wanted.
 *
 *     soak_client SOCKET SLOT SEED ROLE [SHUFCTL]
 */
#include "../support/take.h"
#include "shuf.h"
#include "shuf/gauss.h"
#include "shuf/primefold.h"
#include "shuf/uniform.h"
#include "slot.h"

#include <err.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

enum {
    MOST_VALUES = 50000,
    LARGE_VALUES = 4000000,
    CHECKED = 1000, /* of a large result: so many values at random positions */
    LEASES = 3,
    RECORD = 12,
    LOOK_UPS = 64,
    IMPATIENCE_MS = 20,
};

static const char *socket_path, *shufctl;
static shuf *handle;
static shuf_lease *leases[LEASES];
static uint64_t state; /* of the random numbers below: splitmix64 */

static uint64_t random_below(uint64_t bound)
{
    uint64_t x = state += 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return (x ^ x >> 31) % bound;
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* ---- Results ---- */

static void wrong(const char *call, uint64_t n, uint64_t seed, uint64_t position)
{
    slot->wrong++;
    slot_note("%s: n = %" PRIu64 ", seed %" PRIu64 ": wrong at %" PRIu64, call, n, seed, position);
}

static bool succeeded(shuf_status status, const char *call)
{
    if (status == SHUF_OK)
        return true;
    if (status == SHUF_BUSY) {
        slot->busy++;
        return false;
    }
    slot->failed++;
    slot_note("%s: %s: %s", call, shuf_status_name(status), shuf_message(handle));
    return false;
}

/* Call at once after a successful call. */
static void count(uint64_t begin_ns)
{
    const uint64_t ns = now_ns() - begin_ns;
    slot->calls++;
    if (ns > slot->worst_ns)
        slot->worst_ns = ns;
}

static shuf_request random_permutation(uint64_t most)
{
    /* few seeds, so that clients of a user share results */
    return (shuf_request){
        .permutation = {.n = 1 + random_below(most), .seed = random_below(8), .dtype = SHUF_U32}};
}

static bool is_value(const shuf_primefold *f, const uint32_t *values, const shuf_request *p,
                     uint64_t i, const char *call)
{
    slot->values++;
    if (values[i] == shuf_primefold_forward(f, i))
        return true;
    wrong(call, p->permutation.n, p->permutation.seed, i);
    return false;
}

/* Compares all values of a small permutation, and some of a large one. */
static void compare(const uint32_t *values, const shuf_request *p, const char *call)
{
    const shuf_primefold f =
        shuf_primefold_make(p->permutation.n, p->permutation.seed, p->permutation.epoch);
    const bool all = p->permutation.n <= MOST_VALUES;
    const uint64_t number = all ? p->permutation.n : CHECKED;
    for (uint64_t i = 0; i < number; i++)
        if (!is_value(&f, values, p, all ? i : random_below(p->permutation.n), call))
            return;
}

/* ---- Copies ---- */

static void copy_permutation(void)
{
    static uint32_t values[MOST_VALUES];
    const shuf_request p = random_permutation(MOST_VALUES);
    const uint64_t begin = now_ns();
    if (succeeded(shuf_copy(handle, &p, values, sizeof values, NULL), "permute")) {
        count(begin);
        compare(values, &p, "permute");
    }
}

static void copy_small(void)
{
    static uint32_t values[1000];
    const shuf_request p = {
        .permutation = {
            .n = 1000, .seed = random_below(UINT64_MAX), .epoch = 3, .dtype = SHUF_U32}};
    const uint64_t begin = now_ns();
    if (succeeded(shuf_copy(handle, &p, values, sizeof values, NULL), "permute")) {
        count(begin);
        compare(values, &p, "permute");
    }
}

static void copy_numbers(void)
{
    static double values[CHECKED];
    const shuf_request r = {.kind = SHUF_NUMBERS,
                            .numbers = {.distribution = SHUF_GAUSS,
                                        .seed = random_below(8),
                                        .offset = random_below(UINT64_C(1) << 40),
                                        .count = CHECKED,
                                        .std = 1,
                                        .dtype = SHUF_F64}};
    const shuf_gauss g =
        shuf_gauss_make(r.numbers.seed, r.numbers.stream, r.numbers.mean, r.numbers.std);
    const uint64_t begin = now_ns();
    if (!succeeded(shuf_copy(handle, &r, values, sizeof values, NULL), "draw"))
        return;
    count(begin);
    slot->values += CHECKED;
    for (uint64_t i = 0; i < CHECKED; i++)
        if (values[i] != shuf_gauss_f64(&g, r.numbers.offset + i)) {
            wrong("draw", r.numbers.offset, r.numbers.seed, i);
            return;
        }
}

static void look_up(void)
{
    uint64_t at[LOOK_UPS], found[LOOK_UPS];
    const shuf_request p = {
        .permutation = {.n = 1 + random_below(UINT64_C(1) << 50), .seed = random_below(8)}};
    const shuf_primefold f = shuf_primefold_make(p.permutation.n, p.permutation.seed, 0);
    const uint64_t begin = now_ns();
    for (int i = 0; i < LOOK_UPS; i++)
        at[i] = random_below(p.permutation.n);
    if (!succeeded(shuf_index(handle, &p.permutation, SHUF_FORWARD, at, LOOK_UPS, found), "index"))
        return;
    count(begin);
    slot->values += LOOK_UPS;
    for (int i = 0; i < LOOK_UPS; i++)
        if (found[i] != shuf_primefold_forward(&f, at[i]))
            wrong("index", p.permutation.n, p.permutation.seed, at[i]);
}

static void shuffle(void)
{
    static unsigned char in[MOST_VALUES][RECORD], out[MOST_VALUES][RECORD];
    const shuf_records r = {
        .n = 1 + random_below(MOST_VALUES), .record = RECORD, .seed = random_below(8)};
    const shuf_primefold f = shuf_primefold_make(r.n, r.seed, 0);
    const uint64_t begin = now_ns();
    for (uint64_t i = 0; i < r.n; i++)
        memcpy(in[i], &i, sizeof i);
    if (!succeeded(shuf_shuffle(handle, &r, in, out, r.n * RECORD, NULL), "shuffle"))
        return;
    count(begin);
    slot->values += r.n;
    for (uint64_t i = 0; i < r.n; i++)
        if (memcmp(out[i], in[shuf_primefold_forward(&f, i)], RECORD) != 0) {
            wrong("shuffle", r.n, r.seed, i);
            return;
        }
}

static void copy(void)
{
    static void (*const calls[])(void) = {copy_permutation, copy_small, copy_numbers, look_up,
                                          shuffle};
    calls[random_below(sizeof calls / sizeof *calls)]();
}

/* ---- Leases ---- */

static void take_lease(shuf_lease **lease)
{
    const shuf_request p = random_permutation(random_below(4) ? MOST_VALUES : LARGE_VALUES);
    const uint64_t begin = now_ns();
    if (random_below(4) == 0)
        succeeded(shuf_prefetch(handle, &p, NULL), "prefetch");
    if (succeeded(shuf_lease_take(handle, &p, NULL, lease), "lease")) {
        count(begin);
        compare((*lease)->data, &p, "lease");
    }
}

static void fill(uint32_t *values, uint64_t number)
{
    for (uint64_t i = 0; i < number; i++)
        values[i] = (uint32_t)i * 3;
}

/* Fills a buffer, and takes a lease of its shuffled copy. */
static void shuffle_buffer(shuf_lease **lease)
{
    shuf_lease *buffer = NULL;
    const shuf_records r = {
        .n = 1 + random_below(MOST_VALUES), .record = 4, .seed = random_below(8)};
    const shuf_primefold f = shuf_primefold_make(r.n, r.seed, 0);
    const uint64_t begin = now_ns();
    const shuf_lease_options mapped = {.transports = SHUF_MEMFD};
    if (!succeeded(take_buffer(handle, 4 * r.n, &mapped, &buffer), "buffer"))
        return;
    fill(buffer->buffer, r.n);
    const shuf_status status = take_shuffle(handle, &r, buffer, &mapped, lease);
    /* If the daemon of the buffer is lost, the header promises this status. */
    if (status == SHUF_NO_DAEMON)
        slot->cancelled++;
    else if (succeeded(status, "shuffle of a buffer")) {
        count(begin);
        slot->values += r.n;
        for (uint64_t i = 0; i < r.n; i++)
            if (((const uint32_t *)(*lease)->data)[i] != 3 * shuf_primefold_forward(&f, i)) {
                wrong("shuffle of a buffer", r.n, r.seed, i);
                break;
            }
    }
    succeeded(shuf_lease_release(handle, &buffer), "release of a buffer");
}

static void lease(void)
{
    shuf_lease **one = &leases[random_below(LEASES)];
    switch (random_below(8)) {
    case 0:
        succeeded(shuf_lease_release(handle, one), "release");
        break;
    case 1:
        shuffle_buffer(one);
        break;
    default:
        take_lease(one);
    }
}

/* ---- A reader in a hurry, and one without ---- */

struct reading {
    shuf_request request;
    shuf_primefold f;
    uint64_t position, chunks; /* `chunks`: the number that it wants */
    unsigned pause_us;
};

static bool read_chunk(void *context, const void *bytes, size_t size)
{
    struct reading *r = context;
    const uint32_t *values = bytes;
    const uint64_t number = size / sizeof *values;
    for (int i = 0; i < 16; i++, slot->values++) {
        const uint64_t at = random_below(number);
        if (values[at] != shuf_primefold_forward(&r->f, r->position + at))
            wrong("chunk", r->request.permutation.n, r->request.permutation.seed, r->position + at);
    }
    r->position += number;
    usleep(r->pause_us);
    return r->chunks-- > 1 && !slot_stop;
}

static void read_in_chunks(uint64_t chunks, unsigned pause_us)
{
    const uint64_t begin = now_ns();
    struct reading r = {
        .request = {.permutation = {.n = LARGE_VALUES, .seed = random_below(8), .dtype = SHUF_U32}},
        .chunks = chunks,
        .pause_us = pause_us};
    r.f = shuf_primefold_make(r.request.permutation.n, r.request.permutation.seed, 0);
    const shuf_status status = shuf_each(handle, &r.request, read_chunk, &r, NULL);
    if (status == SHUF_CANCELLED && (r.chunks == 0 || slot_stop))
        slot->cancelled++;
    else if (succeeded(status, "chunks"))
        count(begin);
}

static void read_slowly(void)
{
    read_in_chunks(UINT64_MAX, 20000);
}

/* Asks for the last values of a permutation that takes centuries, and gives up. */
static void give_up(void)
{
    uint32_t values[4];
    const uint64_t n = UINT64_C(1) << 62;
    const shuf_request p = {.permutation = {.algorithm = "philox24",
                                            .n = n - 1,
                                            .view = SHUF_VIEW_SLICE,
                                            .offset = n - 5,
                                            .count = 1,
                                            .stride = 1}};
    shuf_set_timeout(handle, IMPATIENCE_MS);
    const shuf_status status = shuf_copy(handle, &p, values, sizeof values, NULL);
    shuf_set_timeout(handle, 0);
    if (status == SHUF_TIMEOUT)
        slot->cancelled++;
    else if (status == SHUF_OK)
        wrong("an endless request", n, 0, 0);
    else
        succeeded(status, "an endless request");
}

static void cancel(void)
{
    if (random_below(2))
        give_up();
    else
        read_in_chunks(1 + random_below(8), 0);
}

/* ---- Files ---- */

static bool run(const char *const *arguments)
{
    extern char **environ;
    pid_t pid;
    int status;
    if (posix_spawn(&pid, arguments[0], NULL, NULL, (char *const *)(uintptr_t)arguments, environ))
        err(1, "%s", arguments[0]);
    while (waitpid(pid, &status, 0) < 0)
        continue;
    if (status == 0)
        return true;
    if (WIFEXITED(status) && WEXITSTATUS(status) == EX_TEMPFAIL) { /* BUSY */
        slot->busy++;
        return false;
    }
    slot->failed++;
    slot_note("shufctl: wait status %d", status);
    return false;
}

static void write_file(void)
{
    static uint32_t values[MOST_VALUES + 1]; /* one more than the largest file has */
    char n[24], seed[24], path[32];
    const shuf_request p = random_permutation(MOST_VALUES);
    const uint64_t begin = now_ns();
    snprintf(n, sizeof n, "%" PRIu64, p.permutation.n);
    snprintf(seed, sizeof seed, "%" PRIu64, p.permutation.seed);
    /* the shufctl of a client that was killed may still write its own file */
    snprintf(path, sizeof path, "out.%d", (int)getpid());
    const char *const arguments[] = {
        shufctl,     "permute",     "--n",      n,     "--seed",  seed,     "--dtype", "u32",
        "--out",     path,          "--format", "raw", "--quiet", "--wait", "10s",     "--socket",
        socket_path, "--transport", "inline",   NULL}; /* else shufctl computes */
    if (!run(arguments))
        return;
    FILE *file = fopen(path, "re");
    if (!file || fread(values, sizeof *values, p.permutation.n + 1, file) != p.permutation.n)
        wrong("file", p.permutation.n, p.permutation.seed, 0);
    else {
        count(begin);
        compare(values, &p, "file");
    }
    if (file)
        fclose(file);
    unlink(path);
}

/* ---- The program ---- */

static const struct role {
    const char *name;
    void (*call)(void);
} roles[] = {
    {"copy", copy},        {"small", copy_small}, {"lease", lease},
    {"slow", read_slowly}, {"cancel", cancel},    {"file", write_file},
};

static void (*find_role(const char *name))(void)
{
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (strcmp(roles[i].name, name) == 0)
            return roles[i].call;
    errx(64, "%s: no such role", name);
}

/* A client sometimes connects again, which ends its leases. */
static void connect_anew(void)
{
    shuf_close(handle);
    memset(leases, 0, sizeof leases);
    if (!succeeded(shuf_connect(&handle, socket_path), "connect"))
        usleep(10000);
}

int main(int argc, char **argv)
{
    if (argc < 5)
        errx(64, "usage: soak_client SOCKET SLOT SEED ROLE [SHUFCTL]");
    socket_path = argv[1];
    slot_open(argv[2]);
    state = strtoull(argv[3], NULL, 0);
    void (*const call)(void) = find_role(argv[4]);
    shufctl = argv[5];
    while (!slot_stop) {
        if (!handle || random_below(200) == 0)
            connect_anew();
        call();
    }
    shuf_close(handle);
}
