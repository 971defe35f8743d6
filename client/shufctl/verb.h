/* SPDX-License-Identifier: MIT
 *
 * The verbs of shufctl: one file each, one row each in main.c.
 */
#ifndef SHUF__VERB_H
#define SHUF__VERB_H

/* argv[0] is "shufctl VERB"; the exit code. Wrong options end the process with
 * 64 (argp's way), --help with 0. */
int shuf__verb_gauss(int argc, char **argv);
int shuf__verb_index(int argc, char **argv);
int shuf__verb_leases(int argc, char **argv);
int shuf__verb_permute(int argc, char **argv);
int shuf__verb_shuffle(int argc, char **argv);
int shuf__verb_status(int argc, char **argv);
int shuf__verb_uniform(int argc, char **argv);
int shuf__verb_version(int argc, char **argv);

#endif
