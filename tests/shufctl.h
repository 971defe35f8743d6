/* SPDX-License-Identifier: MIT
 *
 * What the tests of shufctl share: a daemon that it finds by itself, a directory
 * for its files, and how it is run.
 */
#ifndef TESTS_SHUFCTL_H
#define TESTS_SHUFCTL_H

#include "command.h"
#include "harness.h"

extern struct harness shufctl_daemon;
extern char shufctl_directory[64]; /* empty at first, and expected so at the end */

/* A group's set-up and tear-down. The backend is that of `shufctl_backend`. */
extern const char *shufctl_backend;
int shufctl_set_up(void **state);
int shufctl_tear_down(void **state);

/* shufctl and the words that `format` makes, which are parted by single blanks. */
void shufctl_start(struct command *command, unsigned flags, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int shufctl_run(struct command *command, unsigned flags, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Runs it to success and gives what stood on stdout, freed by the caller; *size may be NULL. */
char *shufctl_succeed(size_t *size, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Runs it to that exit status: nothing on stdout, and whole lines with these words on stderr. */
void shufctl_refuse(int status, const char *words, const char *arguments);

/* Runs a script for sh, in which $0 is shufctl. */
int shufctl_script(struct command *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The whole of a file, NUL-ended and freed by the caller. */
char *shufctl_read(const char *path, size_t *size);

/* "DIRECTORY/name"; valid for the next three calls too. */
const char *shufctl_path(const char *name);

/* Entries of the directory, and the end of one. */
int shufctl_files(void);
void shufctl_remove(const char *name);

#endif
