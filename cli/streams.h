/* SPDX-License-Identifier: MIT
 *
 * The standard streams of a program, and the handling of output that fails.
 */
#ifndef SHUF__STREAMS_H
#define SHUF__STREAMS_H

/* Call it first. Occupies closed standard streams, turns the signal for a file above ulimit -f into
 * an error, and ends the process with 74 at exit() if standard output could not be written. */
void shuf__streams_prepare(void);

/* strerror(3) for the errno of a file that is written or read, with advice. */
const char *shuf__cause_text(int cause);

#endif
