/* SPDX-License-Identifier: MIT
 *
 * `shuf-quality order`, and the runs of its tests (order.h).
 */
#include "json.h"
#include "order.h"
#include "provenance.h"
#include "report.h"
#include "verb.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

/* ---- Running the tests ---- */

const struct shuf__order_family shuf__order_families[] = {
    {"windowed", "windowed orders", shuf__order_judge_windowed},
    {"mixture", "mixtures", shuf__order_judge_mixture},
    {"weighted", "weighted draws and samples", shuf__order_judge_weighted},
    {0},
};

void shuf__order_expect(shuf_status status)
{
    if (status != SHUF_OK)
        exit(shuf__fail_with(shuf__exit_code(status), "%s", shuf_message(NULL)));
}

void *shuf__order_allocate(size_t count, size_t size)
{
    void *memory = calloc(count + 1, size);
    if (!memory)
        exit(shuf__fail_with(EX_OSERR, "no memory"));
    return memory;
}

/* ---- Pieces ---- */

static shuf_status open_pieces(void *state, const struct shuf__origin *origin, uint32_t n,
                               struct shuf__error *error)
{
    (void)n, (void)error;
    *(const struct shuf__origin **)state = origin;
    return SHUF_OK;
}

static shuf_status read_pieces(void *state, const struct shuf__row_request *request, uint32_t *rows,
                               size_t *count, struct shuf__error *error)
{
    const struct shuf__origin *origin = *(const struct shuf__origin **)state;
    const struct shuf__pieces *pieces = origin->pieces;
    struct shuf__mixed mixed = {0};
    (void)error;
    for (size_t r = 0; r < request->count; r++) {
        const struct shuf__place place =
            shuf__place_of(origin, request->relation, request->bit, request->first + r);
        pieces->row(pieces, &mixed, place.seed, place.epoch, rows + r * pieces->n);
    }
    shuf__mixed_close(&mixed);
    *count = request->count;
    return SHUF_OK;
}

static void close_pieces(void *state)
{
    (void)state;
}

static const struct shuf__source_type source_pieces = {
    .name = "pieces",
    .parallel = true,
    .relatives = true,
    .data = true,
    .state = sizeof(const struct shuf__origin *),
    .open = open_pieces,
    .read = read_pieces,
    .close = close_pieces,
};

/* These three look for traces of the arithmetic of `primefold`, for which `suite` has more rows. */
static bool is_of_pieces(const struct shuf__test *test)
{
    return strcmp(test->name, "parallelograms") != 0 && strcmp(test->name, "ratios") != 0 &&
           strcmp(test->name, "characters") != 0;
}

/* Findings get the name of the pieces, and the test's name becomes a part of the detail. */
static void rename_findings(const struct shuf__pieces *pieces, size_t from)
{
    struct shuf__findings *all = pieces->run->findings;
    for (size_t i = from; i < all->count; i++) {
        struct shuf__finding *f = &all->finding[i];
        char detail[sizeof f->detail];
        memcpy(detail, f->detail, sizeof detail);
        snprintf(f->detail, sizeof f->detail, "%s, %.26s", f->test, detail);
        f->test = pieces->name;
    }
}

void shuf__order_judge_pieces(const struct shuf__pieces *pieces)
{
    const struct shuf__order_run *run = pieces->run;
    const struct shuf__origin origin = {
        .type = &source_pieces, .pieces = pieces, .seed = run->seed};
    struct shuf__run_options options = {.origin = &origin,
                                        .n = pieces->n,
                                        .samples = pieces->rows * run->effort,
                                        .threads = run->threads};
    const size_t before = run->findings->count;
    struct shuf__outcome outcome;
    struct shuf__error error;
    for (int i = 0; shuf__tests[i].name; i++)
        options.tests |= (uint32_t)is_of_pieces(&shuf__tests[i]) << i;
    const shuf_status status = shuf__run(&options, run->findings, &outcome, &error);
    if (status != SHUF_OK && !outcome.bad_rows)
        exit(shuf__quality_fail_error(&error, status, false));
    rename_findings(pieces, before);
    run->findings->test = pieces->name;
    shuf__order_find_exact(run, pieces->n, outcome.bad_rows, "permutations");
}

void shuf__order_rank(const uint32_t *value, uint32_t n, uint32_t *rank)
{
    for (uint32_t i = 0; i < n; i++) {
        rank[i] = 0;
        for (uint32_t j = 0; j < n; j++)
            rank[i] += value[j] < value[i];
    }
}

/* ---- Sums ---- */

enum { SHARES = 16 };

double *shuf__order_sum(const struct shuf__order_run *run, const struct shuf__sums *sums)
{
    const size_t words = sums->words;
    const uint64_t samples = sums->samples * run->effort;
    double *sum = shuf__order_allocate(SHARES * words, sizeof *sum);
#pragma omp parallel for schedule(dynamic) num_threads(run->threads)
    for (unsigned share = 0; share < SHARES; share++)
        sums->add(run, sums->context, samples * share / SHARES, samples * (share + 1) / SHARES,
                  sum + share * words);
    for (unsigned share = 1; share < SHARES; share++)
        for (size_t i = 0; i < words; i++)
            sum[i] += sum[share * words + i];
    return sum;
}

/* ---- Findings ---- */

enum { DETAIL = sizeof((struct shuf__finding *)NULL)->detail };

#define FORMAT(text)                           \
    do {                                       \
        va_list args;                          \
        va_start(args, detail);                \
        vsnprintf(text, DETAIL, detail, args); \
        va_end(args);                          \
    } while (0)

void shuf__order_find_counts(const struct shuf__order_run *run, uint32_t n, const double *count,
                             const double *p, size_t cells, const char *detail, ...)
{
    uint64_t *whole = shuf__order_allocate(cells, sizeof *whole);
    char text[DETAIL];
    FORMAT(text);
    for (size_t k = 0; k < cells; k++)
        whole[k] = (uint64_t)count[k];
    shuf__find_chi_squared(run->findings, n,
                           shuf__pearson_least(whole, p, cells, SHUF__LEAST_EXPECTED), "%s", text);
    free(whole);
}

void shuf__order_find_sum(const struct shuf__order_run *run, uint32_t n, double sum, double mean,
                          double variance, const char *detail, ...)
{
    char text[DETAIL];
    FORMAT(text);
    shuf__find(run->findings, n, sum, mean, shuf__normal_p((sum - mean) / sqrt(variance)), "%s",
               text);
}

void shuf__order_find_exact(const struct shuf__order_run *run, uint32_t n, double violations,
                            const char *detail)
{
    shuf__find(run->findings, n, violations, 0, violations == 0, "%s", detail);
}

/* ---- The verb ---- */

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

/* ---- Reports ---- */

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
