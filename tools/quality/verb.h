/* SPDX-License-Identifier: MIT
 *
 * The verbs of shuf-quality. Each is a function in verb_NAME.c, and one row in main.c.
 */
#ifndef SHUF__QUALITY_VERB_H
#define SHUF__QUALITY_VERB_H

/* argv[0] is "shuf-quality VERB". Each returns the exit code. argp ends the process with 64 after a
 * wrong option, and with 0 after --help. */
int shuf__quality_bits(int argc, char **argv);
int shuf__quality_judge(int argc, char **argv);
int shuf__quality_list(int argc, char **argv);
int shuf__quality_order(int argc, char **argv);
int shuf__quality_plot(int argc, char **argv);
int shuf__quality_rounds(int argc, char **argv);
int shuf__quality_stream(int argc, char **argv);
int shuf__quality_suite(int argc, char **argv);
int shuf__quality_words(int argc, char **argv);

#endif
