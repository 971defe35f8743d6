/* SPDX-License-Identifier: MIT
 *
 * Comments in the lines of a configuration file. A '#' or ';' begins a comment at the beginning of
 * a line, and after a blank. Values have no quotes.
 */
#ifndef SHUFD_COMMENT_H
#define SHUFD_COMMENT_H

#include "error.h"

/* Refuses a value that a file cannot hold, because the rest of its line would be a comment, and a
 * value in quotes. Fails with SHUF_INVALID. */
shuf_status shuf__comment_refuse(const char *key, const char *value, struct shuf__error *error);

/* Adds to the error of a wrong value that a comment needs a blank before it, if the value seems to
 * have one. Returns the status of the error. */
shuf_status shuf__comment_explain(const char *value, struct shuf__error *error);

/* Cuts a comment that begins with a blank and '#'. libinih itself cuts one with ';'. */
void shuf__comment_cut(char *line);

#endif
