/* SPDX-License-Identifier: MIT
 *
 * See end_by_signal.h.
 */
#include "end_by_signal.h"

#include <stddef.h>
#include <unistd.h>

static const int ending_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
enum { ENDING_SIGNALS = sizeof ending_signals / sizeof *ending_signals, CLEANUPS = 2 };

static void (*cleanups[CLEANUPS])(void); /* changes while the signals are blocked */

static void clean_up_and_die(int number)
{
    for (int i = 0; i < CLEANUPS && cleanups[i]; i++)
        cleanups[i]();
    if (getpid() == 1)
        _exit(128 + number); /* the first process of a PID namespace survives the signal itself */
    /* SA_RESETHAND has reset the signal, so it ends the process when this handler returns. */
    raise(number);
}

static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = clean_up_and_die, .sa_flags = (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < ENDING_SIGNALS; i++) {
        struct sigaction old;
        sigaction(ending_signals[i], NULL, &old);
        if (old.sa_handler != SIG_IGN) /* under nohup the signal stays ignored */
            sigaction(ending_signals[i], &action, NULL);
    }
}

void shuf__block_signals(sigset_t *old)
{
    sigset_t set;
    sigemptyset(&set);
    for (int i = 0; i < ENDING_SIGNALS; i++)
        sigaddset(&set, ending_signals[i]);
    sigprocmask(SIG_BLOCK, &set, old);
}

void shuf__unblock_signals(const sigset_t *old)
{
    sigprocmask(SIG_SETMASK, old, NULL);
}

void shuf__signals_end_first_process(void)
{
    if (getpid() == 1)
        catch_signals();
}

void shuf__before_signal(void (*cleanup)(void))
{
    sigset_t old;
    int i = 0;
    shuf__block_signals(&old);
    while (i < CLEANUPS && cleanups[i] && cleanups[i] != cleanup)
        i++;
    if (i < CLEANUPS)
        cleanups[i] = cleanup;
    catch_signals();
    shuf__unblock_signals(&old);
}
