/* SPDX-License-Identifier: MIT
 *
 * `shuf-quality rounds` and `plot`.
 */
#include "json.h"
#include "option.h"
#include "picture.h"
#include "report.h"
#include "verb.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

/* ---- Rounds ---- */

/* `shuf-quality rounds`: prints the maximum mean discrepancy for each n and number of rounds, with
 * its acceptance regions. For a generator without rounds it prints one for each n. */

struct point {
    uint32_t n;
    unsigned rounds;
    uint64_t rows;
    struct shuf__finding found;
};

static uint32_t only_mmd(void)
{
    int i = 0;
    while (strcmp(shuf__tests[i].name, "mmd") != 0)
        i++;
    return UINT32_C(1) << i;
}

/* Sets *measured to false if there were too few rows. Only an interrupt causes this. */
static int measure(const struct shuf__quality_options *o, struct point *point, bool *measured)
{
    struct shuf__origin origin = o->origin;
    const struct shuf__run_options run = {
        .origin = &origin,
        .n = point->n,
        .samples = shuf__quality_samples(o, point->n),
        .tests = only_mmd(),
        .threads = o->judging.threads,
        .progress = isatty(STDERR_FILENO),
    };
    struct shuf__findings findings = {.alpha = o->judging.alpha};
    struct shuf__outcome outcome;
    struct shuf__error error;
    origin.rounds = point->rounds;
    shuf_status status = shuf__run(&run, &findings, &outcome, &error);
    *measured = findings.count > 0;
    if (*measured) {
        point->found = findings.finding[0];
        point->rows = outcome.rows;
    }
    shuf__findings_free(&findings);
    if (status != SHUF_OK)
        return shuf__quality_fail_error(&error, status, outcome.bad_rows);
    if (!*measured && !outcome.interrupted)
        return shuf__fail_with(EX_USAGE, "--samples %" PRIu64 ": expected 50 or more", run.samples);
    return EX_OK;
}

static json_t *point_json(const struct point *point)
{
    json_t *object = json_object();
    shuf__json_integer(object, "n", point->n);
    shuf__json_integer(object, "rounds", point->rounds);
    shuf__json_integer(object, "rows", point->rows);
    json_object_set_new(object, "mmd", json_real(point->found.statistic));
    json_object_set_new(object, "normal", shuf__report_region(&point->found.normal));
    json_object_set_new(object, "hoeffding", shuf__report_region(&point->found.hoeffding));
    return object;
}

static json_t *points_json(const struct shuf__quality_options *o, const struct point *points,
                           unsigned count)
{
    json_t *object = shuf__report_object(o), *array = json_array();
    json_object_set_new(object, "sweep", json_boolean(o->sweep));
    for (unsigned i = 0; i < count; i++)
        json_array_append_new(array, point_json(&points[i]));
    json_object_set_new(object, "points", array);
    return object;
}

static const char *verdict(const struct shuf__region *region, double alpha)
{
    return region->p < alpha ? "out" : "in";
}

static void print_points(const struct shuf__quality_options *o, const struct point *points,
                         unsigned count)
{
    char origin[256];
    shuf__report_origin(&o->origin, origin, sizeof origin);
    printf("%s; squared discrepancy by the Mallows kernel, lambda 5\n\n", origin);
    printf("%9s %6s %12s %13s  %-19s %-19s %10s\n", "n", "rounds", "rows", "mmd", "normal region",
           "Hoeffding's", "p");
    for (unsigned i = 0; i < count; i++) {
        const struct shuf__finding *f = &points[i].found;
        printf("%9" PRIu32 " %6u %12" PRIu64 " %13.5g  +-%-9.3g %-7s +-%-9.3g %-7s %10.3g\n",
               points[i].n, points[i].rounds, points[i].rows, f->statistic, f->normal.high,
               verdict(&f->normal, o->judging.alpha), f->hoeffding.high,
               verdict(&f->hoeffding, o->judging.alpha), f->p);
    }
}

static int report(const struct shuf__quality_options *o, const struct point *points, unsigned count)
{
    int code = EX_OK;
    json_t *object = points_json(o, points, count);
    if (o->judging.plot && count > 0)
        code = shuf__draw(o->judging.plot, &object, 1);
    if (o->judging.json) {
        shuf__json_print(object, stdout); /* frees the object */
    } else {
        json_decref(object);
        print_points(o, points, count);
    }
    return code;
}

static int sweep(const struct shuf__quality_options *o, struct point *points)
{
    unsigned count = 0;
    for (unsigned i = 0; i < o->size_count; i++)
        for (unsigned rounds = o->first_rounds; rounds <= o->last_rounds; rounds++) {
            bool measured = false;
            points[count] = (struct point){.n = o->sizes[i], .rounds = rounds};
            const int code = shuf__interrupted() ? EX_OK : measure(o, &points[count], &measured);
            if (code != EX_OK)
                return code;
            count += measured;
        }
    const int code = report(o, points, count);
    if (code == EX_OK && shuf__interrupted())
        return shuf__fail_with(EX_TEMPFAIL, "interrupted: the report is of what was done");
    return code;
}

int shuf__quality_rounds(int argc, char **argv)
{
    static struct shuf__quality_options options;
    shuf__quality_options(argc, argv, SHUF__ROUNDS, &options);
    const unsigned steps = options.last_rounds - options.first_rounds + 1;
    struct point *points = calloc((size_t)options.size_count * steps, sizeof *points);
    if (!points)
        return shuf__fail_with(EX_OSERR, "no memory");
    shuf__catch_interrupts();
    int code = options.judging.plot ? shuf__picture_check(options.judging.plot) : EX_OK;
    if (code == EX_OK)
        code = sweep(&options, points);
    free(points);
    return code;
}

/* ---- Plot ---- */

/* `shuf-quality plot`: draws reports of `rounds` from files in one picture. */

enum { REPORTS = 16 };

struct pictures {
    const char *out;
    const char *path[REPORTS];
    unsigned count;
};

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    struct pictures *p = state->input;
    switch (key) {
    case 'o':
        p->out = text;
        return 0;
    case ARGP_KEY_ARG:
        if (p->count == REPORTS)
            shuf__option_fail(state, EX_USAGE, "argument '%.64s': expected at most %d reports",
                              text, REPORTS);
        p->path[p->count++] = text;
        return 0;
    case ARGP_KEY_END:
        if (!p->out)
            shuf__option_fail(state, EX_USAGE, "--out: missing; expected it, as in --out mmd.svg");
        if (p->count == 0)
            shuf__option_fail(state, EX_USAGE, "expected reports that `rounds --json` wrote");
        return 0;
    default:
        return shuf__option_common(key, text, state);
    }
}

static int load(const char *path, json_t **report)
{
    json_error_t error;
    *report = json_load_file(path, 0, &error);
    if (!*report)
        return shuf__fail_with(EX_NOINPUT, "%.128s: %s", path, error.text);
    if (json_array_size(json_object_get(*report, "points")) == 0)
        return shuf__fail_with(EX_DATAERR, "%.128s: expected a report of `rounds --json`", path);
    return EX_OK;
}

int shuf__quality_plot(int argc, char **argv)
{
    static const struct argp_option option_table[] = {
        {"out", 'o', "FILE.svg", 0, "The picture (required)", 0},
        SHUF__OPTION_HELP,
        {0},
    };
    static const struct argp argp = {
        .options = option_table,
        .parser = parse_option,
        .args_doc = "REPORT...",
        .doc = "Draws reports that `rounds --json` wrote, one panel each.",
    };
    struct pictures pictures = {0};
    json_t *reports[REPORTS] = {0};
    int code = EX_OK;
    shuf__options_parse(&argp, argc, argv, &pictures);
    for (unsigned i = 0; i < pictures.count && code == EX_OK; i++)
        code = load(pictures.path[i], &reports[i]);
    if (code == EX_OK)
        code = shuf__draw(pictures.out, reports, pictures.count);
    for (unsigned i = 0; i < pictures.count; i++)
        json_decref(reports[i]);
    return code;
}
