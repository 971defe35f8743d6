/* SPDX-License-Identifier: MIT
 *
 * How a command fails: one line on stderr and an exit code of sysexits.h. Output that fails is such
 * a failure.
 */
#ifndef SHUF__EXIT_H
#define SHUF__EXIT_H

#include "shuf_status.h"

/* Each line begins with the name of the program. main() sets it first. */
extern const char *shuf__program_name;

/* Called before each message, to clear a line of progress; NULL: nothing. */
extern void (*shuf__before_failure)(void);

/* Prints "PROGRAM: ..." on stderr, in one line and without control characters, and returns `code`.
 */
int shuf__fail_with(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The exit code of a status. */
int shuf__exit_code(shuf_status status);

/* ---- The standard streams ---- */

/* Call it first. Gives closed standard streams a descriptor, so that no file gets their numbers.
 * Ignores the signal for a file above ulimit -f, so that the write fails with an error instead. At
 * exit(), ends the process with 74 if standard output could not be written. */
void shuf__streams_prepare(void);

/* strerror(3) for the errno of a file that is written or read, with advice. */
const char *shuf__cause_text(int cause);

#endif
