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

/* Begins a phase of `total` bytes (0: unknown), with a name such as "writing". */
void shuf__progress_phase(const char *name, uint64_t total);

/* Adds this many bytes to the finished bytes of the phase. */
void shuf__progress_add(uint64_t bytes);

/* Hides the line until the end, for example because the values go to the same terminal. */
void shuf__progress_hide(void);

/* Clears the line. A later phase begins anew. */
void shuf__progress_end(void);

/* Shows the events of calls with this handle, and sets its reconnect time. A loss is shown by one
 * line on stderr, even without a terminal, but not with --quiet. */
void shuf__progress_observe(shuf *handle, unsigned reconnect_ms);

/* ---- Terminals ---- */

enum { SHUF__COLUMNS_MOST = 4096 };

/* The columns of the terminal, 1 to SHUF__COLUMNS_MOST; 80 if it does not report them. */
unsigned shuf__terminal_columns(int fd);

#endif
