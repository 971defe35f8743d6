/* SPDX-License-Identifier: MIT
 *
 * Files of the kernel, such as /proc/meminfo, that the daemon reads often and never closes. Any
 * process that may read a file can set a million record locks on it (fcntl F_SETLK) in a second.
 * Each close() of the file by any process then searches all of these locks, which takes 0.1 s.
 */
#ifndef SHUF__KEPT_FILE_H
#define SHUF__KEPT_FILE_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    SHUF__KEPT_FILES = 24
}; /* at most; a process has two or three for each level of its group */

/* From now on shuf__kept_file_read() keeps its files open. A library must not call this, because
 * the program that uses it may close their descriptors. */
void shuf__kept_files_begin(void);

/* Reads the text of the file from its beginning, at most size - 1 bytes. False, with errno, if the
 * file cannot be opened or read. May be called on any thread. */
bool shuf__kept_file_read(const char *path, char *text, size_t size);

#ifdef __cplusplus
}
#endif

#endif
