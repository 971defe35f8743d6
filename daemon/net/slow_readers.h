/* SPDX-License-Identifier: MIT
 *
 * Clients that read their replies slowly keep the results in memory. They may do so until another
 * request needs the memory. Then the slowest client is cut off. Its libshuf repeats the request,
 * and continues at the first byte that it has not read.
 */
#ifndef SHUFD_SLOW_READERS_H
#define SHUFD_SLOW_READERS_H

#include "session.h"

/* A client that reads its reply at this rate is not cut off. Messages and documents call it
 * 1 MiB/s. */
enum { SHUF__READ_BYTES_PER_MS = 1024 };

/* The bytes of the results that clients read slowly, in host or device memory. If `only` is not
 * NULL, counts only the clients of that user. `context`: the sessions. */
uint64_t shuf__slow_readers_bytes(void *context, enum shuf__side side, const uint32_t *only);

/* Gives back the result of the slowest reader, and cuts off the reader in its next turn. False: all
 * clients read fast enough. */
bool shuf__slow_readers_cut_off(void *context, enum shuf__side side);

#endif
