/* SPDX-License-Identifier: MIT
 *
 * Prints the table of docs/metrics.md from the daemon's table of metrics.
 */
#include <ctype.h>
#include <stdio.h>

struct row {
    const char *name, *type, *unit, *labels, *help;
};

static const struct row rows[] = {
#define SHUF__METRIC(name, type, unit, labels, help, statement) {#name, #type, unit, labels, help},
#include "handlers/metrics.def"
#undef SHUF__METRIC
};

static const char *suffix_of(const struct row *row)
{
    return *row->type == 'C' ? "_total" : *row->type == 'I' ? "_info" : "";
}

int main(void)
{
    puts("| metric | type | unit | labels | meaning |\n|---|---|---|---|---|");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row *row = &rows[i];
        printf("| `%s%s` | ", row->name, suffix_of(row));
        for (const char *at = row->type; *at; at++)
            putchar(tolower((unsigned char)*at));
        printf(" | %s | %s | %s |\n", *row->unit ? row->unit : "-", row->labels, row->help);
    }
    return 0;
}
