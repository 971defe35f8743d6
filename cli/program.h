/* SPDX-License-Identifier: MIT
 *
 * A program of verbs: shufctl and shuf-quality. Its main() is a table and one call.
 */
#ifndef SHUF__PROGRAM_H
#define SHUF__PROGRAM_H

#include "program_table.h"

/* Finds the verb and runs it. Handles `help`, --help and --version. If the output cannot be
 * written, every verb ends with 74. */
int shuf__program_run(const struct shuf__program *program, int argc, char **argv);

#endif
