/* SPDX-License-Identifier: MIT
 *
 * Keeps SIGTERM and SIGINT from killing a process that is already ending. libuv restores the
 * default action of a signal when the last watcher of the signal is closed. A second SIGTERM would
 * then kill the daemon before it removes its lock and writes its last line.
 */
#ifndef SHUFD_SIGNAL_GUARD_H
#define SHUFD_SIGNAL_GUARD_H

/* Starts a watcher of SIGTERM and one of SIGINT that do nothing, until the process has ended. Call
 * it once. Returns 0 or an error of libuv. */
int shuf__signal_guard_start(void);

#endif
