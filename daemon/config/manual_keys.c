/* SPDX-License-Identifier: MIT
 *
 * Prints the sections KEYS and THE VALUE 0 of shufd.conf(5) from params.def, in the language of
 * scdoc. The build runs this program; it is not installed.
 */
#include "log.h"
#include "number.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum when { RELOAD, RESTART };

struct row {
    const char *key, *standard, *help;
    uint64_t least, most;
    enum when when;
    void (*print_values)(const struct row *row);
};

static void print_TEXT(const struct row *row)
{
    printf("A text of at most %" PRIu64 " bytes.", row->most);
}

static void print_PATH(const struct row *row)
{
    printf("A path of at most %" PRIu64 " bytes.", row->most);
}

static void print_BACKEND(const struct row *row)
{
    print_TEXT(row);
}

static void print_ENDPOINT(const struct row *row)
{
    (void)row;
    printf("*off*, *127.0.0.1:*_PORT_ or *[::1]:*_PORT_.");
}

static void print_TEXTFILE(const struct row *row)
{
    printf("Empty, or an absolute path of at most %" PRIu64 " bytes that ends in .prom.",
           row->most);
}

static void print_NUMBER(const struct row *row)
{
    char least[SHUF__NUMBER_TEXT], most[SHUF__NUMBER_TEXT];
    printf("A number from %s to %s.", shuf__bound_text(least, row->least),
           shuf__bound_text(most, row->most));
}

static void print_AMOUNT(const struct row *row)
{
    (void)row;
    printf("A size, or a part in whole percent, such as 25%%.");
}

static void print_DURATION(const struct row *row)
{
    char least[SHUF__NUMBER_TEXT], most[SHUF__NUMBER_TEXT];
    printf("A duration from %s to %s.", shuf__duration_text(least, row->least),
           shuf__duration_text(most, row->most));
}

static void print_MODE(const struct row *row)
{
    printf("Permissions up to %04" PRIo64 ", with permission to write for somebody.", row->most);
}

static void print_LEVEL(const struct row *row)
{
    for (uint64_t level = row->least; level <= row->most; level++)
        printf("%s*%s*", level == row->least ? "One of " : ", ",
               shuf__log_level_name((enum shuf__log_level)level));
    putchar('.');
}

static void print_PLACE(const struct row *row)
{
    (void)row;
    printf("One of *auto*, *host*, *device*.");
}

/* Escapes the characters that are markup in scdoc, some of them only at the beginning of a line. A
 * line ends with `end`. */
static void print_plain(const char *text, const char *end)
{
    for (; *text; text++) {
        if (strchr("*_\\|[]#-.", *text))
            putchar('\\');
        if (*text == '\n')
            fputs(end, stdout);
        else
            putchar(*text);
    }
    putchar('\n');
}

static void print_row(const struct row *row)
{
    printf("*%s* = %s\n", row->key, *row->standard ? row->standard : "(empty)");
    putchar('\t');
    print_plain(row->help, "\n\t");
    putchar('\t');
    row->print_values(row);
    puts(row->when == RESTART ? " A change takes effect at the next start.\n" : "\n");
}

/* The end of a help that says what 0 means. NULL: the key has no 0. */
static const char *zero_of(const struct row *row)
{
    const char *zero = strstr(row->help, "0: ");
    return zero ? zero + strlen("0: ") : NULL;
}

static void print_zeros(const struct row *rows, size_t count)
{
    puts("# THE VALUE 0\n\n[[ *Key*\n:[ *0 means*");
    for (size_t i = 0; i < count; i++)
        if (zero_of(&rows[i])) {
            printf("|  ");
            print_plain(rows[i].key, " ");
            printf(":  ");
            print_plain(zero_of(&rows[i]), " ");
        }
    putchar('\n');
}

int main(void)
{
    static const struct row rows[] = {
#define SHUF__PARAM(key, kind, standard, least, most, when, help) \
    {#key, standard, help, least, most, when, print_##kind},
#include "params.def"
#undef SHUF__PARAM
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        print_row(&rows[i]);
    print_zeros(rows, sizeof rows / sizeof rows[0]);
    return ferror(stdout) || fflush(stdout) != 0;
}
