/* SPDX-License-Identifier: MIT
 *
 * See exposition.h.
 */
#include "exposition.h"

#include <inttypes.h>
#include <string.h>

static const uint64_t ns_per_second = 1000000000;

static const struct {
    const char *name;
    const char *suffix; /* of samples */
    const char *prometheus;
} types[] = {
    [SHUF__METRIC_COUNTER] = {"counter", "_total", "counter"},
    [SHUF__METRIC_GAUGE] = {"gauge", "", "gauge"},
    [SHUF__METRIC_HISTOGRAM] = {"histogram", "", "histogram"},
    [SHUF__METRIC_INFO] = {"info", "_info", "gauge"}, /* the older format has no infos */
};

void shuf__exposition_begin_family(struct shuf__exposition *x, const struct shuf__metric *family)
{
    const bool open = x->format == SHUF__EXPOSITION_OPENMETRICS;
    const char *suffix = open ? "" : types[family->type].suffix;
    x->family = family;
    fprintf(x->out, "# HELP %s%s %s\n# TYPE %s%s %s\n", family->name, suffix, family->help,
            family->name, suffix, open ? types[family->type].name : types[family->type].prometheus);
    if (open && *family->unit)
        fprintf(x->out, "# UNIT %s %s\n", family->name, family->unit);
}

static void begin_sample(const struct shuf__exposition *x, const char *labels)
{
    fprintf(x->out, "%s%s", x->family->name, types[x->family->type].suffix);
    if (labels || *x->common)
        fprintf(x->out, "{%s%s%s}", x->common, labels && *x->common ? "," : "",
                labels ? labels : "");
}

static void print_seconds(FILE *out, uint64_t ns)
{
    fprintf(out, "%" PRIu64 ".%09" PRIu64, ns / ns_per_second, ns % ns_per_second);
}

void shuf__exposition_number(struct shuf__exposition *x, const char *labels, uint64_t value)
{
    begin_sample(x, labels);
    fprintf(x->out, " %" PRIu64 "\n", value);
}

void shuf__exposition_seconds(struct shuf__exposition *x, const char *labels, uint64_t ns)
{
    begin_sample(x, labels);
    fputc(' ', x->out);
    print_seconds(x->out, ns);
    fputc('\n', x->out);
}

void shuf__exposition_real(struct shuf__exposition *x, const char *labels, double value)
{
    begin_sample(x, labels);
    fprintf(x->out, " %.3f\n", value);
}

static void print_exemplar(const struct shuf__exposition *x, const struct shuf__exemplar *e)
{
    if (x->format != SHUF__EXPOSITION_OPENMETRICS || e->ns == 0)
        return;
    fprintf(x->out, " # {request_id=\"%" PRIu64 ".%" PRIu64 "\"} ", e->request.connection,
            e->request.id);
    print_seconds(x->out, e->ns);
    fprintf(x->out, " %.3f", x->now_seconds - (double)(x->now_ns - e->at_ns) / 1e9);
}

static void print_bound(FILE *out, unsigned bucket)
{
    if (bucket == SHUF__BUCKETS - 1)
        fputs("+Inf", out);
    else
        fprintf(out, shuf__bucket_bounds[bucket] < ns_per_second ? "%.2g" : "%.1f",
                (double)shuf__bucket_bounds[bucket] / 1e9);
}

void shuf__exposition_histogram(struct shuf__exposition *x, const char *labels,
                                const struct shuf__histogram *histogram)
{
    uint64_t count = 0;
    const char *name = x->family->name, *comma = *x->common ? "," : "";
    for (unsigned i = 0; i < SHUF__BUCKETS; i++) {
        count += histogram->count[i];
        fprintf(x->out, "%s_bucket{%s%s%s,le=\"", name, x->common, comma, labels);
        print_bound(x->out, i);
        fprintf(x->out, "\"} %" PRIu64, count);
        if (!x->hides_requests)
            print_exemplar(x, &histogram->last[i]);
        fputc('\n', x->out);
    }
    fprintf(x->out, "%s_sum{%s%s%s} ", name, x->common, comma, labels);
    print_seconds(x->out, histogram->sum_ns);
    fprintf(x->out, "\n%s_count{%s%s%s} %" PRIu64 "\n", name, x->common, comma, labels, count);
}

void shuf__exposition_end(struct shuf__exposition *x)
{
    if (x->format == SHUF__EXPOSITION_OPENMETRICS)
        fputs("# EOF\n", x->out);
}

const char *shuf__exposition_escape(char out[SHUF__LABEL_TEXT], const char *text)
{
    size_t used = 0;
    for (; *text && used < SHUF__LABEL_TEXT - 2; text++) {
        if (*text == '\\' || *text == '"' || *text == '\n')
            out[used++] = '\\';
        out[used++] = *text == '\n' ? 'n' : *text;
    }
    out[used] = '\0';
    return out;
}
