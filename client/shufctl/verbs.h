/* SPDX-License-Identifier: MIT
 *
 * The verbs of shufctl. Each has one row in main.c, and its own file verb_NAME.c; those of random
 * numbers are all shuf__verb_draw().
 */
#ifndef SHUF__VERBS_H
#define SHUF__VERBS_H

/* argv[0] is "shufctl VERB". Each returns the exit code. Wrong options end the process with 64, as
 * argp does, and --help with 0. */
int shuf__verb_bench(int argc, char **argv);
int shuf__verb_doctor(int argc, char **argv);
int shuf__verb_index(int argc, char **argv);
int shuf__verb_draw(int argc, char **argv);
int shuf__verb_drop(int argc, char **argv);
int shuf__verb_leases(int argc, char **argv);
int shuf__verb_metrics(int argc, char **argv);
int shuf__verb_mix(int argc, char **argv);
int shuf__verb_permute(int argc, char **argv);
int shuf__verb_shuffle(int argc, char **argv);
int shuf__verb_status(int argc, char **argv);
int shuf__verb_top(int argc, char **argv);
int shuf__verb_version(int argc, char **argv);

#endif
