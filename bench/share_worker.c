/* SPDX-License-Identifier: MIT
 *
 * See share_worker.h. A worker compares the first and last values with those of the inline C. It
 * also reports a fingerprint of slices between them. All processes must report the same
 * fingerprint.
 */
#include "share_worker.h"

#include "clock.h"
#include "context.h"
#include "expected.h"
#include "shuf/fingerprint.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    EDGE = 4096, /* values to compare at each end */
    PLACES = 16, /* slices in the fingerprint, of EDGE values each */
    GLANCE = 16, /* values to compare before a release */
};

struct worker {
    const struct daemon *daemon;
    shuf_transport transport;
    uint64_t n, epoch;
    shuf *handle;
    shuf_lease *lease;
    struct outcome *outcome;
};

static void fail(struct worker *w, const char *label, const char *why)
{
    snprintf(w->outcome->error, sizeof w->outcome->error, "%s: %s", label, why);
}

static void connect_worker(struct worker *w)
{
    shuf_close(w->handle);
    if (shuf_connect(&w->handle, w->daemon->socket) != SHUF_OK)
        fail(w, "connect", shuf_message(w->handle));
}

/* Does the work that a training process has done before its first request. */
static void begin(struct worker *w)
{
    bool cuda = w->transport == SHUF_CUDA_FD || w->transport == SHUF_CUDA_IPC;
    const char *why = cuda ? context_hold(w->daemon->device_id) : NULL;
    if (why)
        fail(w, "CUDA", why);
    connect_worker(w);
}

/* The time ends when the first value is read, or, for device memory, when the call returns. */
static void take(struct worker *w, uint64_t epoch)
{
    shuf_request request = {.permutation = {.n = w->n, .seed = share_seed, .epoch = epoch}};
    shuf_lease_options options = {.transports = w->transport};
    double start = now_ns();
    if (shuf_lease_take(w->handle, &request, &options, &w->lease) != SHUF_OK) {
        fail(w, "lease", shuf_message(w->handle));
        return;
    }
    if (w->lease->device_id[0] == '\0')
        *(volatile const uint8_t *)w->lease->data;
    w->outcome->ns = now_ns() - start;
    w->outcome->device_ns = w->lease->result.device_ns;
    w->outcome->shared = w->lease->shared;
    w->epoch = epoch;
}

static bool read_values(struct worker *w, uint64_t first, uint64_t count, uint64_t *values)
{
    unsigned width = w->lease->result.shape.width;
    uint8_t bytes[EDGE * 8];
    if (shuf_lease_read(w->handle, w->lease, first * width, count * width, bytes) != SHUF_OK) {
        fail(w, "read", shuf_message(w->handle));
        return false;
    }
    for (uint64_t i = 0; i < count; i++) {
        uint32_t narrow;
        memcpy(&narrow, bytes + i * 4, sizeof narrow);
        values[i] = narrow;
        if (width == 8)
            memcpy(&values[i], bytes + i * 8, sizeof *values);
    }
    return true;
}

static void compare(struct worker *w, const uint64_t *values, const uint64_t *expected,
                    uint64_t count, uint64_t first)
{
    char why[128];
    for (uint64_t i = 0; i < count; i++)
        if (values[i] != expected[i]) {
            snprintf(why, sizeof why, "value %" PRIu64 " is %" PRIu64 ", expected %" PRIu64,
                     first + i, values[i], expected[i]);
            fail(w, "view", why);
            return;
        }
}

static void check_part(struct worker *w, uint64_t first, uint64_t count)
{
    uint64_t values[EDGE], expected[EDGE];
    expected_part(w->n, share_seed, w->epoch, first, count, expected);
    if (read_values(w, first, count, values))
        compare(w, values, expected, count, first);
}

static void add_places(struct worker *w, uint64_t count)
{
    uint64_t values[EDGE], sum = 0;
    for (uint64_t place = 0; place < PLACES; place++) {
        uint64_t first = (w->n - count) / PLACES * place;
        if (!read_values(w, first, count, values))
            return;
        for (uint64_t i = 0; i < count; i++)
            sum += shuf_fingerprint_term(first + i, values[i]);
    }
    w->outcome->fingerprint = sum;
}

static void check(struct worker *w)
{
    uint64_t count = w->n < EDGE ? w->n : EDGE;
    check_part(w, 0, count);
    check_part(w, w->n - count, count);
    add_places(w, count);
    w->outcome->block = w->lease->block;
}

static void release(struct worker *w)
{
    check_part(w, 0, w->n < GLANCE ? w->n : GLANCE);
    if (shuf_lease_release(w->handle, &w->lease) != SHUF_OK)
        fail(w, "release", shuf_message(w->handle));
    w->lease = NULL;
}

static void run_command(struct worker *w, const struct command *command)
{
    switch (command->act) {
    case ACT_BEGIN:
        begin(w);
        return;
    case ACT_CONNECT:
        connect_worker(w);
        return;
    case ACT_TAKE:
        take(w, command->epoch);
        return;
    case ACT_CHECK:
        check(w);
        return;
    case ACT_RELEASE:
        release(w);
        return;
    }
}

_Noreturn void share_work(const struct daemon *daemon, shuf_transport transport, uint64_t n, int fd)
{
    struct worker w = {.daemon = daemon, .transport = transport, .n = n};
    struct command command;
    while (recv(fd, &command, sizeof command, 0) == sizeof command) {
        struct outcome outcome = {0};
        w.outcome = &outcome;
        run_command(&w, &command);
        if (send(fd, &outcome, sizeof outcome, 0) != sizeof outcome)
            break;
    }
    shuf_close(w.handle);
    _exit(0);
}
