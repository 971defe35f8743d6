/* SPDX-License-Identifier: MIT
 *
 * What every call of Python into libshuf has: the message of its failure, and the signal handlers
 * of Python, which run while it waits or computes.
 */
#ifndef SHUFPY_CALL_H
#define SHUFPY_CALL_H

#include <stdbool.h>

/* Keeps the status and the message for shufpy_status() and shufpy_message() of this thread. Returns
 * the status. */
int shufpy__fail(int status, const char *text);

/* From here to shufpy__end_interruptible(), Python's signal handlers run in this thread. */
void shufpy__begin_interruptible(void);
void shufpy__end_interruptible(void);

/* Whether a handler has raised an exception since shufpy__begin_interruptible(). */
bool shufpy__has_raised(void);

#endif
