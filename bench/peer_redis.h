/* SPDX-License-Identifier: MIT
 *
 * The rows of bench_bystander for a redis-server: the bystander's small requests beside attacks of
 * the same kinds. One thread of Redis serves all clients, as the loop of shufd does.
 */
#ifndef SHUF__BENCH_PEER_REDIS_H
#define SHUF__BENCH_PEER_REDIS_H

#include "bystander_rows.h"

/* The request of the bystander. Its reply is a value of 4 * BYSTANDER_N bytes. */
#define REDIS_GET "*2\r\n$3\r\nGET\r\n$5\r\nvalue\r\n"

/* The tables of attacks on Redis, as those on shufd (hostile.h). */
extern const struct attack redis_attacks[], redis_attacks_on_log[];

/* Starts `program`, a redis-server, for each table, and adds the rows. If the program is not
 * installed, the report says so and has no rows. */
void peer_redis_rows(const struct bench *bench, const char *program);

#endif
