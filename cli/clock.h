/* SPDX-License-Identifier: MIT
 *
 * The clock by which programs measure: it never jumps, and a signal handler may read it.
 */
#ifndef SHUF__CLOCK_H
#define SHUF__CLOCK_H

#include <stdint.h>

/* CLOCK_MONOTONIC in nanoseconds. */
uint64_t shuf__clock_ns(void);

#endif
