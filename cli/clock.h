/* SPDX-License-Identifier: MIT
 *
 * The monotonic clock of the programs. A signal handler may read it.
 */
#ifndef SHUF__CLOCK_H
#define SHUF__CLOCK_H

#include <stdint.h>

/* CLOCK_MONOTONIC in nanoseconds. */
uint64_t shuf__clock_ns(void);

#endif
