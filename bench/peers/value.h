/* SPDX-License-Identifier: MIT
 *
 * The peers in C are compiled twice, so that each is as fast as it can be: for u32 that they make
 * themselves, 0, 1, 2, ..., and with PEER_ITEMS for u64 that they are given.
 */
#ifndef SHUF__BENCH_VALUE_H
#define SHUF__BENCH_VALUE_H

#include <stdint.h>

#ifdef PEER_ITEMS
typedef uint64_t value;
#else
typedef uint32_t value;
#endif

#endif
