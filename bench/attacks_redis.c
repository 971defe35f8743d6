/* SPDX-License-Identifier: MIT
 *
 * The attacks of hostile.h on Redis, in a table. They are those of attacks.c, as far as Redis has a
 * counterpart: GET for a small result, and INFO for Status.
 */
#include "peer_redis.h"

#include <string.h>

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

/* Redis closes the connections that exceed its memory for clients (peer_redis.c). So connections
 * with large replies reconnect, else the attack would end. */
const struct attack redis_attacks[] = {
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
const struct attack redis_attacks_on_log[] = {
    {.name = "redis: bad frames, log not read",
     .connections = 8,
     .fill = fill_bad_frame,
     .closed = RECONNECTS},
    {0},
};
