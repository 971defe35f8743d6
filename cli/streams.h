/* SPDX-License-Identifier: MIT
 *
 * The standard streams of a program, and what a failed output means.
 */
#ifndef SHUF__STREAMS_H
#define SHUF__STREAMS_H

/* Call it first. Occupies closed standard streams, makes a file above ulimit -f an error instead of
 * a signal, and ends the process with 74 at exit() if standard output could not be written. */
void shuf__streams_prepare(void);

/* strerror(3) for the errno of a file that is written or read, with what to do. */
const char *shuf__cause_text(int cause);

#endif
