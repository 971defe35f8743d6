/* SPDX-License-Identifier: MIT
 *
 * Prints scripts by which bash, zsh and fish complete the options of a program. The scripts come
 * from the program's tables of options.
 */
#ifndef SHUF__COMPLETION_H
#define SHUF__COMPLETION_H

#include "program_table.h"

/* Prints the script for `shell`: `PROGRAM --completion bash`. Returns the exit code. If the
 * argument of an option is "one|other", it completes to these values. If it is FILE or PATH, it
 * completes to files.
 */
int shuf__completion_print(const struct shuf__program *program, const char *shell);

#endif
