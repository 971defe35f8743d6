/* SPDX-License-Identifier: MIT
 *
 * Counts this process's own descriptors, to find leaks.
 */
#ifndef SHUF__TEST_DESCRIPTORS_H
#define SHUF__TEST_DESCRIPTORS_H

/* Entries of the directory; fails the test if it cannot be opened. */
int count_entries(const char *path);

/* The number of open descriptors of this process, plus a constant. */
int count_descriptors(void);

#endif
