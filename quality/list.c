/* SPDX-License-Identifier: MIT
 *
 * `shuf-quality list`: the tests and the generators.
 */
#include "fail.h"
#include "generator.h"
#include "test.h"
#include "verb.h"

#include <inttypes.h>
#include <stdio.h>
#include <sysexits.h>

static void print_test(const struct shuf__test *test)
{
    printf("  %-18s %s", test->name, test->what);
    if (test->most != 0)
        printf("; n from %" PRIu32 " to %" PRIu32, test->least, test->most);
    else if (test->least > 2)
        printf("; n from %" PRIu32, test->least);
    puts(test->relatives ? "; not of --in" : "");
}

static void print_generator(const struct shuf__generator *g)
{
    printf("  %-18s %s", g->name, g->what);
    if (g->most_rounds != 0)
        printf("; --rounds 1 to %u, %u by default", g->most_rounds, g->rounds);
    puts("");
}

int shuf__quality_list(int argc, char **argv)
{
    if (argc > 1)
        return shuf__quality_fail(EX_USAGE, "list: argument '%.64s': expected none", argv[1]);
    puts("tests");
    for (const struct shuf__test *test = shuf__tests; test->name; test++)
        print_test(test);
    puts("generators");
    for (const struct shuf__generator *const *g = shuf__generators; *g; g++)
        print_generator(*g);
    return EX_OK;
}
