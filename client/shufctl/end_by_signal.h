/* SPDX-License-Identifier: MIT
 *
 * The work to do before a signal ends shufctl: to remove a temporary file, to clear the line of the
 * progress.
 */
#ifndef SHUF__END_BY_SIGNAL_H
#define SHUF__END_BY_SIGNAL_H

#include <signal.h>

/* From now on calls `cleanup` before SIGINT, SIGTERM, SIGHUP or SIGQUIT ends the process, except
 * for signals that are ignored. It must be safe in a signal handler. At most two different ones. */
void shuf__before_signal(void (*cleanup)(void));

/* Blocks these signals, while the data that a cleanup reads change. */
void shuf__block_signals(sigset_t *old);
void shuf__unblock_signals(const sigset_t *old);

#endif
