/* SPDX-License-Identifier: MIT
 *
 * See print_key.h. NO_COLOR: https://no-color.org
 */
#include "print_key.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_set(const char *name)
{
    const char *value = getenv(name);
    return value && *value;
}

static bool has_colours(FILE *to)
{
    const char *terminal = getenv("TERM");
    return isatty(fileno(to)) && !is_set("NO_COLOR") && terminal && strcmp(terminal, "dumb") != 0;
}

void shuf__print_key(FILE *to, const char *key)
{
    const bool bold = has_colours(to);
    fprintf(to, "%s%-12s%s", bold ? "\033[1m" : "", key, bold ? "\033[0m" : "");
}
