/* SPDX-License-Identifier: MIT
 *
 * shufd run to its end, and the files that it reads and writes, for tests of how it
 * starts and ends. Everything that goes wrong fails the running cmocka test.
 */
#ifndef SHUF__TEST_SHUFD_H
#define SHUF__TEST_SHUFD_H

#include <stddef.h>

void shufd_write(const char *path, const char *text);

/* What fits into `size` bytes of it, NUL-ended; how many they are. */
size_t shufd_read(const char *path, char *text, size_t size);

/* This wait status is of an exit with this code. */
void shufd_expect_code(int status, int code);

/* Runs shufd to its end, which must come with this exit code and text. */
void shufd_expect_exit(const char *const *arguments, int code, const char *text);

#endif
