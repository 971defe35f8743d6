/* SPDX-License-Identifier: MIT
 *
 * See call.h.
 */
#include "call.h"
#include "shim.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

enum {
    TEXT = 512, /* as libshuf's messages */
    ASK_MS = 100,
};

static _Thread_local struct {
    int status;
    char text[TEXT];
} last; /* the failure of this thread's last call */

static _Thread_local struct {
    bool is_running;   /* Python can raise the exception of a signal handler after this call */
    bool has_raised;   /* a signal handler has raised an exception */
    uint64_t asked_ms; /* the time when Python last ran its signal handlers */
} call;

int shufpy_status(void)
{
    return last.status;
}

const char *shufpy_message(void)
{
    return last.text;
}

int shufpy__fail(int status, const char *text)
{
    last.status = status;
    snprintf(last.text, sizeof last.text, "%s", text);
    return status;
}

/* ---- Signals ------------------------------------------------------------------- */

bool shufpy_run_signal_handlers(void); /* in _process.py */

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* The thread can run Python's signal handlers from now on. Python has just run them. */
void shufpy__begin_interruptible(void)
{
    call.is_running = true;
    call.has_raised = false;
    call.asked_ms = now_ms();
}

void shufpy__end_interruptible(void)
{
    call.is_running = false;
}

bool shufpy__has_raised(void)
{
    return call.has_raised;
}

/* Python runs its handlers here, because the call may last for hours. libshuf asks often, but
 * Python needs its global lock to answer. So Python is asked only after a signal, and each ASK_MS.
 * The release of a lease by Python's garbage collection cannot raise an exception. So it ends, and
 * Python runs the handlers after it. */
static bool is_interrupted(void)
{
    const bool by_signal = errno == EINTR;
    if (!call.is_running)
        return by_signal;
    if (!by_signal && now_ms() - call.asked_ms < ASK_MS)
        return false;
    const bool has_raised = shufpy_run_signal_handlers();
    shufpy__begin_interruptible(); /* a handler may have made another call */
    call.has_raised = has_raised;
    return has_raised;
}

void shufpy_watch_signals(void)
{
    shuf_set_interrupt(is_interrupted);
}
