/* SPDX-License-Identifier: MIT
 *
 * Comments in the lines of a configuration file. A '#' or ';' begins a comment at the beginning of
 * a line, and after a blank.
 */
#ifndef SHUFD_COMMENT_H
#define SHUFD_COMMENT_H

#include <stdbool.h>

/* Whether a file cannot hold the value, because the rest of its line would be a comment. */
bool shuf__comment_is_in(const char *value);

/* Cuts a comment that begins with a blank and '#'. libinih itself cuts one with ';'. */
void shuf__comment_cut(char *line);

#endif
