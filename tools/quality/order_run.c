/* SPDX-License-Identifier: MIT
 *
 * See order.h: the families, the source of pieces, sums by all threads, and findings.
 */
#include "fail.h"
#include "order.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

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

/* ---- Pieces ---------------------------------------------------------------------- */

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

/* ---- Sums ------------------------------------------------------------------------ */

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

/* ---- Findings -------------------------------------------------------------------- */

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
