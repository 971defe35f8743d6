/* SPDX-License-Identifier: MIT
 *
 * The common parts of shufctl's tests: a daemon at the default socket, a directory for files,
 * functions that run shufctl, and the parser of its JSON.
 */
#ifndef TESTS_SHUFCTL_H
#define TESTS_SHUFCTL_H

#include "support/command.h"
#include "support/harness.h"

#include <jansson.h>
#include <stdint.h>

extern struct harness shufctl_daemon;
extern char shufctl_directory[64]; /* empty at first; the tear-down expects it empty */

/* Set-up and tear-down of a group, on the backend `shufctl_backend`. */
extern const char *shufctl_backend;
int shufctl_set_up(void **state);
int shufctl_tear_down(void **state);

/* The same without a daemon, for verbs that need none. */
int shufctl_set_up_alone(void **state);
int shufctl_tear_down_alone(void **state);

/* Starts shufctl with the arguments that `format` makes, separated by single blanks. */
void shufctl_start(struct command *command, unsigned flags, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int shufctl_run(struct command *command, unsigned flags, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Runs shufctl and expects success. Returns its stdout, which the caller frees; *size may be
 * NULL. */
char *shufctl_succeed(size_t *size, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Runs shufctl and expects this exit status, an empty stdout, and whole lines with these words on
 * stderr. */
void shufctl_fail(int status, const char *words, const char *arguments);

/* The same for each mistake. Prints all that differ before it fails. */
struct shufctl_mistake {
    const char *arguments;
    int status;
    const char *words;
};
void shufctl_fail_each(const struct shufctl_mistake *mistakes, size_t count);

/* Runs a script for sh, in which $0 is shufctl. */
int shufctl_script(struct command *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Returns a whole file with a final NUL; the caller frees it. */
char *shufctl_read(const char *path, size_t *size);

/* Returns "DIRECTORY/name", valid until the fourth next call. */
const char *shufctl_path(const char *name);

/* Counts the entries of the directory, and removes one. */
int shufctl_count_files(void);
void shufctl_remove(const char *name);

/* ---- The output of --json. A missing or wrong member fails the test ---- */

/* Frees `text`. */
json_t *json_parse(char *text);

const json_t *json_member(const json_t *object, const char *key);
uint64_t json_member_integer(const json_t *object, const char *key);
const char *json_member_text(const json_t *object, const char *key);
uint64_t json_member_hex(const json_t *object, const char *key); /* a string of 16 digits */

#endif
