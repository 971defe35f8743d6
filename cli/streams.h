/* SPDX-License-Identifier: MIT
 *
 * The standard streams of a program, and the handling of output that fails.
 */
#ifndef SHUF__STREAMS_H
#define SHUF__STREAMS_H

/* Call it first. Gives closed standard streams a descriptor, so that no file gets their numbers.
 * Ignores the signal for a file above ulimit -f, so that the write fails with an error instead. At
 * exit(), ends the process with 74 if standard output could not be written. */
void shuf__streams_prepare(void);

/* strerror(3) for the errno of a file that is written or read, with advice. */
const char *shuf__cause_text(int cause);

#endif
