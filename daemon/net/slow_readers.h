/* SPDX-License-Identifier: MIT
 *
 * Clients that read their replies slowly keep the results in memory. They may do so until another
 * request needs the memory. Then the slowest client is cut off. Its libshuf repeats the request,
 * and continues at the first byte that it has not read.
 */
#ifndef SHUFD_SLOW_READERS_H
#define SHUFD_SLOW_READERS_H

#include "session.h"

/* The bytes of the results that the clients of a user read slowly, in host or device memory. `uid`
 * may be SHUF__ALL_USERS. `context`: the sessions. */
uint64_t shuf__slow_readers_bytes(void *context, enum shuf__side side, uint32_t uid);

/* Gives back the result of the slowest reader, and cuts off the reader in its next turn. False: all
 * clients read fast enough. */
bool shuf__slow_readers_cut_off(void *context, enum shuf__side side);

#endif
