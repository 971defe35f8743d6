/* SPDX-License-Identifier: MIT
 *
 * Work that must be done before a signal ends shufctl, such as removing a temporary file or
 * clearing the line of the progress.
 */
#ifndef SHUF__END_BY_SIGNAL_H
#define SHUF__END_BY_SIGNAL_H

#include <signal.h>

/* From now on calls `cleanup` before SIGINT, SIGTERM, SIGHUP or SIGQUIT ends the process. Ignored
 * signals stay ignored. `cleanup` must be safe in a signal handler. There may be two different
 * functions at most. */
void shuf__before_signal(void (*cleanup)(void));

/* As the first process of a PID namespace, such as that of a container, lets these signals end the
 * process with the status of a shell, 128 and the number. By default it would survive them. */
void shuf__signals_end_first_process(void);

/* Blocks these signals. Use it while the data that a cleanup reads change. */
void shuf__block_signals(sigset_t *old);
void shuf__unblock_signals(const sigset_t *old);

#endif
