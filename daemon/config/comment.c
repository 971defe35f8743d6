/* SPDX-License-Identifier: MIT
 *
 * See comment.h.
 */
#include "comment.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static bool is_in(const char *value)
{
    for (const char *mark = value; (mark = strpbrk(mark, "#;")) != NULL; mark++)
        if (mark == value || isspace((unsigned char)mark[-1]))
            return true;
    return false;
}

shuf_status shuf__comment_refuse(const char *key, const char *value, struct shuf__error *error)
{
    if (is_in(value))
        return shuf__fail(error, SHUF_INVALID,
                          "%s %.64s: expected no '#' or ';' at the beginning or after a blank", key,
                          value);
    if (*value == '"' || *value == '\'')
        return shuf__fail(error, SHUF_INVALID, "%s %.64s: expected the value without quotes", key,
                          value);
    return SHUF_OK;
}

shuf_status shuf__comment_explain(const char *value, struct shuf__error *error)
{
    const size_t used = strlen(error->text);
    const char *mark = strpbrk(value, "#;");
    if (mark)
        snprintf(error->text + used, sizeof error->text - used,
                 "; a comment needs a blank before its '%c'", *mark);
    return error->status;
}

void shuf__comment_cut(char *line)
{
    for (char *hash = line; (hash = strchr(hash, '#')) != NULL; hash++)
        if (hash > line && (hash[-1] == ' ' || hash[-1] == '\t')) {
            *hash = '\0';
            return;
        }
}
