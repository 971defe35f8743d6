/* SPDX-License-Identifier: MIT
 *
 * Many connections of one user. The program opens them, and then sends a small request by one after
 * the other until SIGTERM. It compares all values with the inline C. At the end it writes the time
 * of each call, in microseconds, as 32-bit numbers to stdout.
 *
 *     soak_crowd SOCKET SLOT SEED CONNECTIONS
 *
 * Each line on stdin begins a phase: the samples of earlier phases are forgotten.
 */
#include "shuf.h"
#include "shuf/primefold.h"
#include "slot.h"

#include <err.h>
#include <inttypes.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { N = 1000, MOST_SAMPLES = 1 << 20, PAUSE_MS = 50, RECONNECT_MS = 1000 };

static uint32_t samples[MOST_SAMPLES];
static size_t sample_count;

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void fail(shuf *handle, shuf_status status, const char *call)
{
    slot->failed++;
    slot_note("%s: %s: %s", call, shuf_status_name(status), shuf_message(handle));
}

static void add_sample(uint64_t ns)
{
    if (sample_count < MOST_SAMPLES)
        samples[sample_count++] = (uint32_t)(ns / 1000);
    if (ns > slot->worst_ns)
        slot->worst_ns = ns;
}

static void compare(const uint32_t *values, uint64_t seed)
{
    const shuf_primefold f = shuf_primefold_make(N, seed, 0);
    slot->calls++;
    slot->values += N;
    for (uint64_t i = 0; i < N; i++)
        if (values[i] != shuf_primefold_forward(&f, i)) {
            slot->wrong++;
            slot_note("seed %" PRIu64 ": wrong at %" PRIu64, seed, i);
            return;
        }
}

static void request(shuf *handle, uint64_t seed)
{
    uint32_t values[N];
    const shuf_request p = {.permutation = {.n = N, .seed = seed, .dtype = SHUF_U32}};
    const uint64_t begin = now_ns();
    const shuf_status status = shuf_copy(handle, &p, values, sizeof values, NULL);
    add_sample(now_ns() - begin);
    if (status == SHUF_OK)
        compare(values, seed);
    else
        fail(handle, status, "permute");
}

static shuf **open_connections(const char *socket, size_t count)
{
    shuf **handles = calloc(count, sizeof(shuf *));
    if (!handles)
        err(1, "connections");
    for (size_t i = 0; i < count; i++) {
        const shuf_status status = shuf_connect(&handles[i], socket);
        if (status != SHUF_OK)
            fail(handles[i], status, "connect");
        else
            slot->cancelled++; /* here: the number of connections */
        shuf_set_reconnect(handles[i], RECONNECT_MS);
    }
    return handles;
}

/* Waits at most `ms`, -1: without limit, for a line on stdin. Returns whether one came. */
static bool await_line(int ms)
{
    char line[16];
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    return poll(&input, 1, ms) > 0 && read(STDIN_FILENO, line, sizeof line) > 0;
}

int main(int argc, char **argv)
{
    if (argc != 5)
        errx(64, "usage: soak_crowd SOCKET SLOT SEED CONNECTIONS");
    slot_open(argv[2]);
    uint64_t seed = strtoull(argv[3], NULL, 0);
    const size_t count = strtoull(argv[4], NULL, 0);
    shuf **handles = open_connections(argv[1], count);
    await_line(-1);
    for (size_t i = 0; !slot_stop; i = (i + 1) % count) {
        if (await_line(PAUSE_MS))
            sample_count = 0;
        request(handles[i], seed++);
    }
    fwrite(samples, sizeof *samples, sample_count, stdout);
}
