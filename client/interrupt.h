/* SPDX-License-Identifier: MIT
 *
 * Asks the program whether a signal ends the call that runs.
 */
#ifndef SHUF__INTERRUPT_H
#define SHUF__INTERRUPT_H

#include "error.h"

#include <stdbool.h>

/* True if the program has set a function, so a wait must not be long. */
bool shuf__has_interrupt(void);

/* Asks the function. It finds `cause` in errno: EINTR if a signal has interrupted a wait, else 0.
 * True: the call has to end. Keeps errno. */
bool shuf__is_interrupted(int cause);

/* Fails with SHUF_CANCELLED: the message says that a signal ended the call. */
shuf_status shuf__fail_interrupted(const char *socket, struct shuf__error *error);

#endif
