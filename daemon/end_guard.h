/* SPDX-License-Identifier: MIT
 *
 * A limit for the time in which a daemon that has drained closes its device, and its process ends.
 * The loop's thread then waits for the driver and for the threads of lanes, so a timer of the loop
 * could not end the wait. A driver may also hang when its library is unloaded, after a failed start
 * too.
 */
#ifndef SHUFD_END_GUARD_H
#define SHUFD_END_GUARD_H

#include <stdint.h>

enum { SHUF__END_MS = 5000 }; /* in which the libraries of a device are unloaded */

/* Calls leave(context) on a thread of its own after this time, unless the process has ended before.
 * Then ends the process with this exit code. If `leave` is NULL, writes a line on standard error
 * instead. Call it once. Does nothing if no thread can be created. */
void shuf__end_guard_start(uint64_t ms, int exit_code, void (*leave)(void *context), void *context);

/* Call before `context` is freed. After the time the process then ends without leave(), with a line
 * on standard error. */
void shuf__end_guard_forget(void);

#endif
