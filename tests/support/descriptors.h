/* SPDX-License-Identifier: MIT
 *
 * Counts this process's own descriptors, to find leaks.
 */
#ifndef SHUF__TEST_DESCRIPTORS_H
#define SHUF__TEST_DESCRIPTORS_H

/* Entries of the directory; fails the test if it cannot be opened. */
int count_entries(const char *path);

/* Open descriptors of this process, and a constant number more. */
int count_descriptors(void);

#endif
