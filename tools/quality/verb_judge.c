/* SPDX-License-Identifier: MIT
 *
 * `shuf-quality judge`, `suite` and `list`.
 */
#include "device_run.h"
#include "generator.h"
#include "option.h"
#include "order.h"
#include "report.h"
#include "stream.h"
#include "test.h"
#include "verb.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>
#include <unistd.h>

/* ---- Judge and suite ---- */

/* `shuf-quality judge` and `suite`: the tests on one size, or on many. */

static int judge_size(struct shuf__report *report, uint32_t n)
{
    const struct shuf__quality_options *o = report->options;
    const struct shuf__run_options run = {
        .origin = &o->origin,
        .n = n,
        .samples = shuf__quality_samples(o, n),
        .tests = o->judging.tests,
        .threads = o->judging.threads,
        .progress = isatty(STDERR_FILENO),
    };
    struct shuf__case *one = &report->cases[report->case_count];
    struct shuf__error error;
    one->n = n;
    const shuf_status status =
        o->backend ? shuf__run_on_device(o->backend, &run, &report->findings, &one->outcome, &error)
                   : shuf__run(&run, &report->findings, &one->outcome, &error);
    if (status != SHUF_OK)
        return shuf__quality_fail_error(&error, status, one->outcome.bad_rows);
    report->interrupted |= one->outcome.interrupted;
    report->case_count += one->outcome.rows > 0;
    return EX_OK;
}

static uint64_t rows_of(const struct shuf__report *report)
{
    uint64_t rows = 0;
    for (unsigned i = 0; i < report->case_count; i++)
        rows += report->cases[i].outcome.rows;
    return rows;
}

static int judge_sizes(struct shuf__report *report)
{
    const struct shuf__quality_options *o = report->options;
    for (unsigned i = 0; i < o->size_count && !report->interrupted; i++) {
        const int code = judge_size(report, o->sizes[i]);
        if (code != EX_OK)
            return code;
    }
    if (report->findings.count == 0 && !report->interrupted)
        return shuf__fail_with(EX_DATAERR,
                               "%" PRIu64 " rows: too few for any of the tests, expected more",
                               rows_of(report));
    return EX_OK;
}

static int judge(int argc, char **argv, enum shuf__quality_verb verb)
{
    static struct shuf__quality_options options;
    struct shuf__report report = {.options = &options};
    shuf__quality_options(argc, argv, verb, &options);
    report.findings.alpha = options.judging.alpha;
    report.cases = calloc(options.size_count, sizeof *report.cases);
    if (!report.cases)
        return shuf__fail_with(EX_OSERR, "no memory");
    shuf__catch_interrupts();
    int code = judge_sizes(&report);
    if (code == EX_OK)
        code = shuf__report_finish(&report, verb == SHUF__JUDGE || options.all);
    shuf__findings_free(&report.findings);
    free(report.cases);
    return code;
}

int shuf__quality_judge(int argc, char **argv)
{
    return judge(argc, argv, SHUF__JUDGE);
}

int shuf__quality_suite(int argc, char **argv)
{
    return judge(argc, argv, SHUF__SUITE);
}

/* ---- List ---- */

/* `shuf-quality list`: the tests and the generators. */

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
