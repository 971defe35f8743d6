/* SPDX-License-Identifier: MIT
 *
 * Runs shufd to its end, and reads its files, for tests of its start and end. All failures fail the
 * running cmocka test.
 */
#ifndef SHUF__TEST_SHUFD_H
#define SHUF__TEST_SHUFD_H

#include <stddef.h>

void shufd_write(const char *path, const char *text);

/* Reads the front of a file into `size` bytes, with a final NUL. Returns the number of bytes
 * read. */
size_t shufd_read(const char *path, char *text, size_t size);

/* Waits until the file contains `expected`, and then reads it like shufd_read(). The daemon's log
 * is written by another thread, a little later. */
void shufd_await(const char *path, char *text, size_t size, const char *expected);

/* Expects that a wait status is an exit with this code. */
void shufd_expect_code(int status, int code);

/* Runs shufd to its end. Expects this exit code and text. */
void shufd_expect_exit(const char *const *arguments, int code, const char *text);

#endif
