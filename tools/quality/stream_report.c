/* SPDX-License-Identifier: MIT
 *
 * See stream_report.h: the table and the object.
 */
#include "stream_report.h"

#include "json.h"
#include "provenance.h"
#include "report.h"
#include "shuf.h"

#include <inttypes.h>

/* ---- For people ------------------------------------------------------------------ */

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

/* ---- For programs ---------------------------------------------------------------- */

static json_t *origin_json(const struct shuf__stream_origin *origin)
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

static json_t *finding_json(const struct shuf__finding *f)
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
        json_array_append_new(array, finding_json(&all->finding[i]));
    shuf__json_text(object, "shuf_quality", shuf_version());
    shuf__provenance_json(object);
    json_object_set_new(object, "source", origin_json(report->origin));
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
