/* SPDX-License-Identifier: MIT
 *
 * The peers in C are compiled twice, for the best code in both cases: for u32 values 0, 1, 2, ...
 * that they generate, and with PEER_ITEMS for given u64 items.
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
