/* SPDX-License-Identifier: MIT
 *
 * The progress of a command, as one line on stderr: its phase, how much is done, the rate and the
 * time left. It appears after a second, on a terminal only, and never with --quiet. A thread draws
 * it, so it also appears while a call of the library waits.
 */
#ifndef SHUF__PROGRESS_H
#define SHUF__PROGRESS_H

#include "shuf.h"

#include <stdbool.h>
#include <stdint.h>

/* Call it before the first phase. */
void shuf__progress_set_quiet(bool quiet);

/* Begins a phase, as "writing", of `total` bytes; 0: unknown. */
void shuf__progress_phase(const char *name, uint64_t total);

/* Adds this many bytes to the finished bytes of the phase. */
void shuf__progress_add(uint64_t bytes);

/* Hides the line, as when the values go to the same terminal, until the end. */
void shuf__progress_hide(void);

/* Clears the line. A later phase begins anew. */
void shuf__progress_end(void);

/* Shows the events of calls with this handle, which waits so long for a lost daemon. A loss is one
 * line on stderr without a terminal too, but not with --quiet. */
void shuf__progress_observe(shuf *handle, unsigned reconnect_ms);

#endif
