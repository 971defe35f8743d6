/* SPDX-License-Identifier: MIT
 *
 * The attacks of hostile.h on shufd, in a table, and the requests that they send.
 */
#include "hostile.h"

#include "message.h"
#include "process.h"
#include "result_message.h"

#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

enum {
    FRAME = SHUF__FRAME_HEADER + SHUF__FRAME_MAX,
    REQUESTS = 16,  /* in a batch */
    LEASES = 40,    /* of a connection */
    RELEASED = 200, /* leases in a Release; the last one does not exist */
    PREFETCHES = 4, /* of a connection */
};

/* ---- Greetings ---- */

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

/* ---- Batches ---- */

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

/* ---- Tables ---- */

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
