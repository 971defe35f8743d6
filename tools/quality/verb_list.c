/* SPDX-License-Identifier: MIT
 *
 * `shuf-quality list`: the tests and the generators.
 */
#include "generator.h"
#include "option_parse.h"
#include "option_values.h"
#include "order.h"
#include "stream.h"
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

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    if (key != ARGP_KEY_ARG)
        return shuf__option_common(key, text, state);
    shuf__option_fail(state, EX_USAGE, "argument '%.64s': expected none", text);
    return 0;
}

int shuf__quality_list(int argc, char **argv)
{
    static const struct argp_option option_table[] = {
        SHUF__OPTION_HELP,
        {0},
    };
    static const struct argp argp = {
        .options = option_table,
        .parser = parse_option,
        .doc = "Names the tests and the generators.",
    };
    shuf__options_parse(&argp, argc, argv, NULL);
    puts("tests");
    for (const struct shuf__test *test = shuf__tests; test->name; test++)
        print_test(test);
    puts("generators");
    for (const struct shuf__generator *const *g = shuf__generators; *g; g++)
        print_generator(*g);
    puts("tests of `stream`");
    for (const struct shuf__stream_test *const *test = shuf__stream_tests; *test; test++)
        printf("  %-18s %s%s\n", (*test)->name, (*test)->what,
               (*test)->relatives ? "; not of --in" : "");
    puts("generators of `stream`");
    for (const struct shuf__stream_generator *const *g = shuf__stream_generators; *g; g++)
        printf("  %-18s %s\n", (*g)->name, (*g)->what);
    puts("tests of `order`");
    for (const struct shuf__order_family *family = shuf__order_families; family->name; family++)
        printf("  %-18s %s\n", family->name, family->what);
    puts("faults of `order`");
    for (const struct shuf__fault *fault = shuf__faults; fault->name; fault++)
        printf("  %-22s %s\n", fault->name, fault->what);
    return EX_OK;
}
