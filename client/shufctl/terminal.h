/* SPDX-License-Identifier: MIT
 *
 * The width of a terminal.
 */
#ifndef SHUFCTL_TERMINAL_H
#define SHUFCTL_TERMINAL_H

enum { SHUF__COLUMNS_MOST = 4096 };

/* The columns of the terminal, 1 to SHUF__COLUMNS_MOST; 80 if it does not report them. */
unsigned shuf__terminal_columns(int fd);

#endif
