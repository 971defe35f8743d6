/* SPDX-License-Identifier: MIT
 *
 * Asks the program whether a signal ends the call that waits.
 */
#ifndef SHUF__INTERRUPT_H
#define SHUF__INTERRUPT_H

#include <stdbool.h>

/* Call it after EINTR, or where a signal may have come. True: the call has to end. Keeps errno. */
bool shuf__is_interrupted(void);

#endif
