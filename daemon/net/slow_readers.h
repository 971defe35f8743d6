/* SPDX-License-Identifier: MIT
 *
 * Clients that read their replies slowly keep the results in memory. They may do so until another
 * request needs the memory: then the slowest client is cut off. libshuf asks the daemon again, from
 * the first byte that it has not read.
 */
#ifndef SHUFD_SLOW_READERS_H
#define SHUFD_SLOW_READERS_H

#include "session.h"

/* Gives back the result of the slowest reader, in host or in device memory, and cuts the reader off
 * in its next turn. `context`: the sessions. False if all of them read fast enough. */
bool shuf__slow_readers_cut_off(void *context, enum shuf__side side);

#endif
