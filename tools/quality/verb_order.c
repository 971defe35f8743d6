/* SPDX-License-Identifier: MIT
 *
 * `shuf-quality order`: windowed orders, mixtures and weighted draws.
 */
#include "fail.h"
#include "json.h"
#include "order.h"
#include "provenance.h"
#include "report.h"
#include "verb.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

enum { KEY_FAULT = 0x100, KEY_SEED, KEY_EFFORT, KEY_ALL };

struct options {
    struct shuf__order_run run;
    struct shuf__judging judging;
    bool all;
};

static const char *family_name(int i)
{
    return shuf__order_families[i].name;
}

static const struct shuf__fault *find_fault(struct argp_state *state, const char *text)
{
    char names[1024] = "";
    for (const struct shuf__fault *fault = shuf__faults; fault->name; fault++) {
        if (strcmp(fault->name, text) == 0)
            return fault;
        shuf__quality_list_name(names, sizeof names, fault->name);
    }
    shuf__option_fail(state, EX_USAGE, "--fault %.64s: expected one of %s", *text ? text : "''",
                      names);
    return NULL;
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    struct options *o = state->input;
    if (key == KEY_FAULT)
        o->run.fault = find_fault(state, text);
    else if (key == KEY_SEED)
        o->run.seed = shuf__quality_number(state, "--seed", text, 0, UINT64_MAX >> 2);
    else if (key == KEY_EFFORT)
        o->run.effort = shuf__quality_number(state, "--effort", text, 1, 1 << 20);
    else if (key == KEY_ALL)
        o->all = true;
    else
        return shuf__judging_parse(key, text, state, &o->judging, family_name);
    return 0;
}

static void parse(int argc, char **argv, struct options *o)
{
    static const struct argp_option option_table[] = {
        {"tests", SHUF__KEY_TESTS, "LIST", 0, "Only these: windowed, mixture, weighted", 1},
        {"seed", KEY_SEED, "S", 0, "The first seed (default 0)", 1},
        {"effort", KEY_EFFORT, "E", 0, "So many times the samples (default 1: about a second)", 1},
        {"fault", KEY_FAULT, "NAME", 0, "Judge orders with a fault; see shuf-quality list", 1},
        {"alpha", SHUF__KEY_ALPHA, "P", 0, "The probability that good orders fail (default 0.001)",
         2},
        {"threads", SHUF__KEY_THREADS, "COUNT", 0, "The number of threads (default: one a core)",
         2},
        {"all", KEY_ALL, NULL, 0, "Print every finding, not only those that failed", 3},
        {"json", SHUF__KEY_JSON, NULL, 0, "Print one JSON object instead of a table", 3},
        SHUF__OPTION_HELP,
        {0},
    };
    static const struct argp argp = {
        .options = option_table,
        .parser = parse_option,
        .doc = "Judges windowed orders, mixtures and weighted draws by their exact laws.",
    };
    *o = (struct options){.run.effort = 1};
    shuf__judging_init(&o->judging);
    shuf__options_parse(&argp, argc, argv, o);
    o->run.threads = o->judging.threads;
}

/* ---- Reports --------------------------------------------------------------------- */

static bool is_first_of_test(const struct shuf__findings *all, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (strcmp(all->finding[i].test, all->finding[at].test) == 0)
            return false;
    return true;
}

static void print_test(const struct shuf__findings *all, const char *test, FILE *to)
{
    size_t count = 0, failed = 0;
    double least = 1;
    for (size_t i = 0; i < all->count; i++) {
        const struct shuf__finding *f = &all->finding[i];
        if (strcmp(f->test, test) != 0)
            continue;
        count++;
        failed += f->failed;
        least = fmin(least, f->p);
    }
    fprintf(to, "%-16s %9zu %8zu %12.3g\n", test, count, failed, least);
}

static void print_table(const struct options *o, const struct shuf__findings *all, FILE *to)
{
    fprintf(to, "%s, seed %" PRIu64 ", effort %" PRIu64 "\n\n",
            o->run.fault ? o->run.fault->what : "orders of libshuf", o->run.seed, o->run.effort);
    fprintf(to, "%-16s %9s %8s %12s\n", "test", "findings", "failed", "least p");
    for (size_t i = 0; i < all->count; i++)
        if (is_first_of_test(all, i))
            print_test(all, all->finding[i].test, to);
    if (o->all || all->failed > 0)
        fprintf(to, "\n%-16s %6s  %-42s %14s %14s %10s %10s  %s\n", "test", "n", "", "statistic",
                "expected", "p", "p (Holm)", "verdict");
    for (size_t i = 0; i < all->count; i++) {
        const struct shuf__finding *f = &all->finding[i];
        if (o->all || f->failed)
            fprintf(to, "%-16s %6" PRIu32 "  %-42s %14.7g %14.7g %10.3g %10.3g  %s\n", f->test,
                    f->n, f->detail, f->statistic, f->expected, f->p, f->p_holm,
                    f->failed ? "FAILED" : "ok");
    }
    fprintf(to, "\n%s: %zu of %zu findings failed, at %g for all together\n",
            all->failed ? "FAILED" : "passed", all->failed, all->count, all->alpha);
}

static void print_json(const struct options *o, const struct shuf__findings *all, FILE *to)
{
    json_t *object = json_object(), *array = json_array();
    shuf__json_text(object, "shuf_quality", shuf_version());
    shuf__provenance_json(object);
    shuf__json_text(object, "source", o->run.fault ? o->run.fault->name : "libshuf");
    shuf__json_decimal(object, "seed", o->run.seed);
    shuf__json_integer(object, "effort", o->run.effort);
    json_object_set_new(object, "alpha", json_real(all->alpha));
    json_object_set_new(object, "passed", json_boolean(all->failed == 0));
    shuf__json_integer(object, "failed", all->failed);
    for (size_t i = 0; i < all->count; i++) {
        json_t *finding = json_object();
        shuf__json_integer(finding, "n", all->finding[i].n);
        shuf__report_finding(finding, &all->finding[i]);
        json_array_append_new(array, finding);
    }
    json_object_set_new(object, "findings", array);
    shuf__json_print(object, to);
}

int shuf__quality_order(int argc, char **argv)
{
    struct options o;
    struct shuf__findings findings = {0};
    parse(argc, argv, &o);
    findings.alpha = o.judging.alpha;
    o.run.findings = &findings;
    for (int i = 0; shuf__order_families[i].name; i++)
        if (o.judging.tests >> i & 1)
            shuf__order_families[i].judge(&o.run);
    shuf__findings_decide(&findings);
    (o.judging.json ? print_json : print_table)(&o, &findings, stdout);
    const bool passed = findings.failed == 0;
    shuf__findings_free(&findings);
    return passed ? EX_OK : SHUF__EXIT_FAILED;
}
