/* SPDX-License-Identifier: MIT
 *
 * Prints the configuration: see config.h. config/shufd.conf is this text.
 */
#include "config.h"

#include <string.h>

static void print_help(const struct shuf__config_help *help, FILE *out)
{
    for (const char *line = help->text; *line;) {
        const size_t length = strcspn(line, "\n");
        const bool is_last = line[length] == '\0';
        fprintf(out, "# %.*s%s\n", (int)length, line,
                is_last && help->needs_restart ? " (restart)" : "");
        line += length + !is_last;
    }
}

void shuf__config_print(const struct shuf__config *config, FILE *out)
{
    char text[SHUF__CONFIG_VALUE], origin[SHUF__CONFIG_ORIGIN];
    if (!config->source.no_file)
        fprintf(out, "# %s\n#\n", shuf__config_origin(config, origin));
    fprintf(
        out,
        "# SPDX-License-Identifier: MIT\n#\n"
        "# The configuration of shufd. Every key is optional. A key without a line has its "
        "default.\n"
        "# Write sizes as 8Gi, 8G or 8589934592, and durations as 10min, 5s or 50us;\n"
        "# `shufctl help units` lists all forms. A blank and a '#' or ';' after a value begin a\n"
        "# comment.\n"
        "# On SIGHUP shufd reads the file again. Keys marked (restart) take effect only at the "
        "next\n"
        "# start.\n");
    for (int key = 0; key < SHUF__CONFIG_KEYS; key++) {
        const struct shuf__config_help help = shuf__config_help((enum shuf__config_key)key);
        const char *value = shuf__config_value(config, (enum shuf__config_key)key, text);
        fputc('\n', out);
        print_help(&help, out);
        fprintf(out, "%s =%s%s\n", help.name, *value ? " " : "", value);
    }
}
