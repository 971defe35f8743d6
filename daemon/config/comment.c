/* SPDX-License-Identifier: MIT
 *
 * See comment.h.
 */
#include "comment.h"

#include <ctype.h>
#include <string.h>

bool shuf__comment_is_in(const char *value)
{
    for (const char *mark = value; (mark = strpbrk(mark, "#;")) != NULL; mark++)
        if (mark == value || isspace((unsigned char)mark[-1]))
            return true;
    return false;
}

void shuf__comment_cut(char *line)
{
    for (char *hash = line; (hash = strchr(hash, '#')) != NULL; hash++)
        if (hash > line && (hash[-1] == ' ' || hash[-1] == '\t')) {
            *hash = '\0';
            return;
        }
}
