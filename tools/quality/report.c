/* SPDX-License-Identifier: MIT
 *
 * See report.h.
 */
#include "report.h"

#include "generator.h"
#include "json.h"
#include "provenance.h"
#include "shuf.h"

#include <inttypes.h>
#include <stdio.h>
#include <sysexits.h>
#include <time.h>

/* ---- Permutations, for people ---- */

static void origin_name(const struct shuf__origin *origin, char *text, size_t size)
{
    if (origin->type == &shuf__source_file)
        snprintf(text, size, "%s", origin->input);
    else if (origin->type == &shuf__source_daemon)
        snprintf(text, size, "shufd's %s", origin->algorithm ? origin->algorithm : "default");
    else if (origin->rounds != 0)
        snprintf(text, size, "%s, %u rounds", origin->generator->name, origin->rounds);
    else
        snprintf(text, size, "%s", origin->generator->name);
}

void shuf__report_origin(const struct shuf__origin *origin, char *text, size_t size)
{
    char name[128];
    origin_name(origin, name, sizeof name);
    if (origin->type == &shuf__source_file)
        snprintf(text, size, "%s", name);
    else if (origin->vary_seed)
        snprintf(text, size, "%s, epoch %" PRIu64 ", seeds from %" PRIu64, name, origin->epoch,
                 origin->seed);
    else
        snprintf(text, size, "%s, seed %" PRIu64 ", epochs from %" PRIu64, name, origin->seed,
                 origin->epoch);
}

static void print_finding(const struct shuf__finding *f, FILE *to)
{
    fprintf(to, "%9" PRIu32 "  %-18s %-18s %14.7g %14.7g %10.3g %10.3g  %s\n", f->n, f->test,
            f->detail, f->statistic, f->expected, f->p, f->p_holm, f->failed ? "FAILED" : "ok");
    if (f->has_regions && f->failed)
        fprintf(to, "%9s  accepted at alpha alone: %.4g (normal), %.4g (Hoeffding)\n", "",
                f->normal.high, f->hoeffding.high);
}

static void print_cases(const struct shuf__report *report, FILE *to)
{
    const struct shuf__findings *all = &report->findings;
    fprintf(to, "%9s  %12s  %9s  %8s  %12s\n", "n", "rows", "findings", "failed", "least p");
    for (unsigned c = 0; c < report->case_count; c++) {
        const struct shuf__case *one = &report->cases[c];
        size_t count = 0, failed = 0;
        double least = 1;
        for (size_t i = 0; i < all->count; i++) {
            const struct shuf__finding *f = &all->finding[i];
            if (f->n != one->n)
                continue;
            count++;
            failed += f->failed;
            least = f->p < least ? f->p : least;
        }
        fprintf(to, "%9" PRIu32 "  %12" PRIu64 "  %9zu  %8zu  %12.3g\n", one->n, one->outcome.rows,
                count, failed, least);
    }
}

void shuf__report_table(const struct shuf__report *report, bool all, FILE *to)
{
    const struct shuf__findings *findings = &report->findings;
    char origin[256];
    shuf__report_origin(&report->options->origin, origin, sizeof origin);
    fprintf(to, "%s\n\n", origin);
    print_cases(report, to);
    if (all || findings->failed > 0)
        fprintf(to, "\n%9s  %-18s %-18s %14s %14s %10s %10s  %s\n", "n", "test", "", "statistic",
                "expected", "p", "p (Holm)", "verdict");
    for (size_t i = 0; i < findings->count; i++)
        if (all || findings->finding[i].failed)
            print_finding(&findings->finding[i], to);
    fprintf(to, "\n%s: %zu of %zu findings failed, at %g for all together\n",
            findings->failed      ? "FAILED"
            : report->interrupted ? "interrupted"
                                  : "passed",
            findings->failed, findings->count, findings->alpha);
}

/* ---- Permutations, for programs ---- */

static json_t *report_origin_json(const struct shuf__origin *origin)
{
    json_t *object = json_object();
    shuf__json_text(object, "kind", origin->type->name);
    if (origin->type == &shuf__source_file) {
        shuf__json_text(object, "file", origin->input);
        shuf__json_text(object, "dtype", origin->wide ? "u64" : "u32");
        return object;
    }
    if (origin->generator) {
        shuf__json_text(object, "generator", origin->generator->name);
        shuf__json_integer(object, "rounds", origin->rounds);
    }
    if (origin->algorithm)
        shuf__json_text(object, "algorithm", origin->algorithm);
    shuf__json_decimal(object, "seed", origin->seed);
    shuf__json_decimal(object, "epoch", origin->epoch);
    shuf__json_text(object, "vary", origin->vary_seed ? "seed" : "epoch");
    return object;
}

json_t *shuf__report_object(const struct shuf__quality_options *options)
{
    json_t *object = json_object();
    shuf__json_text(object, "shuf_quality", shuf_version());
    shuf__provenance_json(object);
    json_object_set_new(object, "source", report_origin_json(&options->origin));
    json_object_set_new(object, "alpha", json_real(options->judging.alpha));
    return object;
}

json_t *shuf__report_region(const struct shuf__region *region)
{
    return json_pack("{s:f, s:f, s:f}", "low", region->low, "high", region->high, "p", region->p);
}

void shuf__report_finding(json_t *object, const struct shuf__finding *f)
{
    shuf__json_text(object, "test", f->test);
    shuf__json_text(object, "detail", f->detail);
    json_object_set_new(object, "statistic", json_real(f->statistic));
    json_object_set_new(object, "expected", json_real(f->expected));
    if (f->dof > 0)
        json_object_set_new(object, "degrees_of_freedom", json_real(f->dof));
    json_object_set_new(object, "p", json_real(f->p));
    json_object_set_new(object, "p_holm", json_real(f->p_holm));
    json_object_set_new(object, "passed", json_boolean(!f->failed));
}

static json_t *report_finding_json(const struct shuf__finding *f)
{
    json_t *object = json_object();
    shuf__json_integer(object, "n", f->n);
    shuf__report_finding(object, f);
    if (f->has_regions) {
        json_object_set_new(object, "hoeffding", shuf__report_region(&f->hoeffding));
        json_object_set_new(object, "normal", shuf__report_region(&f->normal));
    }
    return object;
}

static json_t *cases_json(const struct shuf__report *report)
{
    json_t *array = json_array();
    for (unsigned c = 0; c < report->case_count; c++) {
        const struct shuf__case *one = &report->cases[c];
        json_t *object = json_object();
        shuf__json_integer(object, "n", one->n);
        shuf__json_integer(object, "rows", one->outcome.rows);
        json_object_set_new(object, "seconds", json_real(one->outcome.seconds));
        json_array_append_new(array, object);
    }
    return array;
}

void shuf__report_json(const struct shuf__report *report, FILE *to)
{
    const struct shuf__findings *findings = &report->findings;
    json_t *object = shuf__report_object(report->options), *array = json_array();
    for (size_t i = 0; i < findings->count; i++)
        json_array_append_new(array, report_finding_json(&findings->finding[i]));
    json_object_set_new(object, "passed", json_boolean(findings->failed == 0));
    json_object_set_new(object, "interrupted", json_boolean(report->interrupted));
    shuf__json_integer(object, "failed", findings->failed);
    json_object_set_new(object, "cases", cases_json(report));
    json_object_set_new(object, "findings", array);
    shuf__json_print(object, to);
}

int shuf__report_finish(struct shuf__report *report, bool all)
{
    const struct shuf__quality_options *o = report->options;
    shuf__findings_decide(&report->findings);
    if (o->judging.json)
        shuf__report_json(report, stdout);
    else
        shuf__report_table(report, all, stdout);
    if (report->interrupted)
        return shuf__fail_with(EX_TEMPFAIL, "interrupted: the report is of what was done");
    return report->findings.failed > 0 ? SHUF__EXIT_FAILED : EX_OK;
}

/* ---- Streams, for people ---- */

void shuf__stream_origin_text(const struct shuf__stream_origin *origin, char *text, size_t size)
{
    if (origin->generator)
        snprintf(text, size, "%s, %s, seed %" PRIu64 ", stream %" PRIu64, origin->generator->name,
                 shuf__dtype_name(origin->dtype), origin->seed, origin->stream);
    else
        snprintf(text, size, "%.128s, %s", origin->input, shuf__dtype_name(origin->dtype));
}

void shuf__stream_table(const struct shuf__stream_report *report, FILE *to)
{
    const struct shuf__findings *all = &report->findings;
    char origin[256];
    shuf__stream_origin_text(report->origin, origin, sizeof origin);
    fprintf(to, "%s: %" PRIu64 " values against the %s law\n\n", origin, report->outcome.values,
            report->law->uniform ? "uniform" : "normal");
    fprintf(to, "%-18s %-26s %14s %14s %10s %10s  %s\n", "test", "", "statistic", "expected", "p",
            "p (Holm)", "verdict");
    for (size_t i = 0; i < all->count; i++) {
        const struct shuf__finding *f = &all->finding[i];
        fprintf(to, "%-18s %-26s %14.7g %14.7g %10.3g %10.3g  %s\n", f->test, f->detail,
                f->statistic, f->expected, f->p, f->p_holm, f->failed ? "FAILED" : "ok");
    }
    fprintf(to, "\n%s: %zu of %zu findings failed, at %g for all together\n",
            all->failed                   ? "FAILED"
            : report->outcome.interrupted ? "interrupted"
                                          : "passed",
            all->failed, all->count, all->alpha);
}

/* ---- Streams, for programs ---- */

static json_t *stream_origin_json(const struct shuf__stream_origin *origin)
{
    json_t *object = json_object();
    shuf__json_text(object, "kind", origin->generator ? "generator" : "file");
    if (origin->generator) {
        shuf__json_text(object, "generator", origin->generator->name);
        shuf__json_decimal(object, "seed", origin->seed);
        shuf__json_decimal(object, "stream", origin->stream);
    } else {
        shuf__json_text(object, "file", origin->input);
    }
    shuf__json_text(object, "dtype", shuf__dtype_name(origin->dtype));
    return object;
}

static json_t *stream_finding_json(const struct shuf__finding *f)
{
    json_t *object = json_object();
    shuf__report_finding(object, f);
    return object;
}

double shuf__stream_cell_p(const struct shuf__stream_law *law, unsigned cell)
{
    const double low = SHUF__HISTOGRAM_LOW + cell * SHUF__HISTOGRAM_WIDTH;
    const double high = low + SHUF__HISTOGRAM_WIDTH;
    double sum = 0;
    if (!law->rounded)
        return low > 0 ? shuf__law_above(law, low) - shuf__law_above(law, high)
                       : shuf__law_below(law, high) - shuf__law_below(law, low);
    for (size_t i = 0; i < law->nodes; i++)
        sum += law->node[i] >= low && law->node[i] < high ? law->weight[i] : 0;
    return sum;
}

static json_t *histogram_json(const struct shuf__stream_report *report)
{
    json_t *object = json_object(), *count = json_array(), *expected = json_array();
    json_object_set_new(object, "low", json_real(SHUF__HISTOGRAM_LOW));
    json_object_set_new(object, "width", json_real(SHUF__HISTOGRAM_WIDTH));
    for (unsigned k = 0; k < SHUF__HISTOGRAM_CELLS; k++) {
        json_array_append_new(count, json_integer((json_int_t)report->outcome.histogram[k]));
        json_array_append_new(expected, json_real((double)report->outcome.values *
                                                  shuf__stream_cell_p(report->law, k)));
    }
    json_object_set_new(object, "count", count);
    json_object_set_new(object, "expected", expected);
    return object;
}

void shuf__stream_json(const struct shuf__stream_report *report, FILE *to)
{
    const struct shuf__findings *all = &report->findings;
    json_t *object = json_object(), *array = json_array();
    for (size_t i = 0; i < all->count; i++)
        json_array_append_new(array, stream_finding_json(&all->finding[i]));
    shuf__json_text(object, "shuf_quality", shuf_version());
    shuf__provenance_json(object);
    json_object_set_new(object, "source", stream_origin_json(report->origin));
    shuf__json_text(object, "law", report->law->uniform ? "uniform" : "normal");
    json_object_set_new(object, "alpha", json_real(all->alpha));
    shuf__json_integer(object, "values", report->outcome.values);
    json_object_set_new(object, "seconds", json_real(report->outcome.seconds));
    json_object_set_new(object, "passed", json_boolean(all->failed == 0));
    json_object_set_new(object, "interrupted", json_boolean(report->outcome.interrupted));
    shuf__json_integer(object, "failed", all->failed);
    json_object_set_new(object, "findings", array);
    json_object_set_new(object, "histogram", histogram_json(report));
    shuf__json_print(object, to);
}
