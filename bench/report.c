/* SPDX-License-Identifier: MIT
 *
 * See report.h.
 */
#include "report.h"

#include "commit.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct report {
    json_t *root, *results;
    const char *path;
};

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void add_command(struct report *report, int argc, char **argv)
{
    json_t *command = json_array();
    for (int i = 0; i < argc; i++)
        json_array_append_new(command, json_string(argv[i]));
    json_object_set_new(report->root, "command", command);
}

static _Noreturn void usage(const char *program, const struct report_option *options)
{
    fprintf(stderr, "usage: %s [--json FILE]", program);
    for (; options && options->name; options++)
        fprintf(stderr, " [%s%s%s]", options->name, options->value ? " " : "",
                options->value ? options->value : "");
    fputc('\n', stderr);
    exit(64);
}

static const struct report_option *find_option(const struct report_option *options,
                                               const char *name)
{
    for (; options && options->name; options++)
        if (strcmp(options->name, name) == 0)
            return options;
    return NULL;
}

static void read_options(struct report *report, const struct report_option *options, int argc,
                         char **argv)
{
    const struct report_option json = {"--json", "FILE", &report->path};
    for (int i = 1; i < argc; i++) {
        const struct report_option *option =
            strcmp(argv[i], json.name) == 0 ? &json : find_option(options, argv[i]);
        if (!option || (option->value && i + 1 == argc))
            usage(argv[0], options);
        *option->text = option->value ? argv[++i] : argv[i];
    }
}

/* Figures from a busy machine are not reliable, so the report has its load. */
static void add_load(struct report *report)
{
    double load[1];
    char text[32];
    if (getloadavg(load, 1) != 1)
        return;
    snprintf(text, sizeof text, "%.2f at the start", load[0]);
    report_fact(report, "load of the machine", text);
}

struct report *report_begin_with(const char *title, const struct report_option *options, int argc,
                                 char **argv)
{
    char date[32];
    time_t now = time(NULL);
    struct report *report = calloc(1, sizeof *report);
    if (!report)
        abort();
    read_options(report, options, argc, argv);
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
    report->root = json_object();
    report->results = json_array();
    json_object_set_new(report->root, "title", json_string(title));
    json_object_set_new(report->root, "date", json_string(date));
    json_object_set_new(report->root, "commit", json_string(SHUF_COMMIT));
    add_command(report, argc, argv);
    json_object_set_new(report->root, "results", report->results);
    printf("%s (commit %s)\n", title, SHUF_COMMIT);
    add_load(report);
    return report;
}

struct report *report_begin(const char *title, int argc, char **argv)
{
    return report_begin_with(title, NULL, argc, argv);
}

void report_fact(struct report *report, const char *name, const char *value)
{
    json_object_set_new(report->root, name, json_string(value));
    printf("%s: %s\n", name, value);
}

/* ---- Rows ---- */

/* Prints the names of the columns when a row has other columns than the row before. */
static void print_heading(const char *columns)
{
    static const char *printed;
    if (printed != columns)
        printf("%-44s %12s %s\n", "", "n", columns);
    printed = columns;
}

static void print_name(const char *label, uint64_t n)
{
    printf("%-44s %12llu ", label, (unsigned long long)n);
}

static void end_row(void)
{
    putchar('\n');
    fflush(stdout);
}

static void sort(double *samples, size_t count)
{
    qsort(samples, count, sizeof *samples, ascending);
}

static double median_of(const double *sorted, size_t count)
{
    return count % 2 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
}

/* The smallest sample that is not below `percent` of all samples. */
static double percentile(const double *sorted, size_t count, double percent)
{
    size_t place = (size_t)((double)count * percent / 100);
    return sorted[place < count ? place : count - 1];
}

static json_t *numbers(const double *values, size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, json_real(values[i]));
    return list;
}

static void add_row(struct report *report, const char *label, uint64_t n, json_t *row)
{
    json_object_set_new(row, "what", json_string(label));
    json_object_set_new(row, "n", json_integer((json_int_t)n));
    json_array_append_new(report->results, row);
}

void report_add(struct report *report, const char *label, uint64_t n, uint64_t items,
                const char *unit, uint64_t bytes, double *ns, size_t samples)
{
    static const char columns[] = "   median ms      best ms            G/s       GB/s";
    sort(ns, samples);
    double median = median_of(ns, samples);
    add_row(report, label, n,
            json_pack("{s:I, s:s, s:I, s:f, s:o}", "items", (json_int_t)items, "unit", unit,
                      "bytes", (json_int_t)bytes, "median_ns", median, "samples_ns",
                      numbers(ns, samples)));
    print_heading(columns);
    print_name(label, n);
    printf("%12.4f %12.4f %7.2f %-6s", median / 1e6, ns[0] / 1e6, (double)items / median, unit);
    if (bytes > 0)
        printf(" %10.1f", (double)bytes / median);
    end_row();
}

static json_t *percentiles(const double *sorted, size_t count)
{
    json_t *list = json_array();
    for (int percent = 0; percent <= 100; percent++)
        json_array_append_new(list, json_real(percentile(sorted, count, percent)));
    return list;
}

void report_latency(struct report *report, const char *label, uint64_t n, double *ns,
                    size_t samples)
{
    static const char columns[] = "      p50 us       p90 us       p99 us       max us  samples";
    sort(ns, samples);
    double median = median_of(ns, samples), p90 = percentile(ns, samples, 90),
           p99 = percentile(ns, samples, 99), most = ns[samples - 1];
    bool few = samples <= 1000;
    add_row(report, label, n,
            json_pack("{s:I, s:f, s:f, s:f, s:f, s:o}", "samples", (json_int_t)samples, "p50_ns",
                      median, "p90_ns", p90, "p99_ns", p99, "max_ns", most,
                      few ? "samples_ns" : "percentiles_ns",
                      few ? numbers(ns, samples) : percentiles(ns, samples)));
    print_heading(columns);
    print_name(label, n);
    printf("%12.1f %12.1f %12.1f %12.1f %8zu", median / 1e3, p90 / 1e3, p99 / 1e3, most / 1e3,
           samples);
    end_row();
}

void report_rate(struct report *report, const char *label, uint64_t n, const char *unit,
                 double *rates, size_t samples)
{
    static const char columns[] = "    median/s      worst/s       best/s";
    sort(rates, samples);
    double median = median_of(rates, samples);
    add_row(report, label, n,
            json_pack("{s:s, s:f, s:o}", "unit", unit, "median_per_second", median,
                      "samples_per_second", numbers(rates, samples)));
    print_heading(columns);
    print_name(label, n);
    printf("%12.0f %12.0f %12.0f %s", median, rates[0], rates[samples - 1], unit);
    end_row();
}

void report_value(struct report *report, const char *label, uint64_t n, double value,
                  const char *unit)
{
    static const char columns[] = "       value";
    add_row(report, label, n, json_pack("{s:f, s:s}", "value", value, "unit", unit));
    print_heading(columns);
    print_name(label, n);
    printf("%12.15g %s", value, unit);
    end_row();
}

void report_kernel(struct report *report, const char *label, uint64_t n, uint64_t items,
                   const char *unit, double *ns, size_t samples,
                   const struct report_resources *resources)
{
    static const char columns[] =
        "   median ms      best ms            G/s       registers  local shared warps";
    sort(ns, samples);
    double median = median_of(ns, samples);
    add_row(report, label, n,
            json_pack("{s:I, s:s, s:f, s:o, s:i, s:i, s:i, s:i}", "items", (json_int_t)items,
                      "unit", unit, "median_ns", median, "samples_ns", numbers(ns, samples),
                      "registers", resources->registers, "local_bytes", resources->local,
                      "shared_bytes", resources->shared, "warps_per_multiprocessor",
                      resources->warps));
    print_heading(columns);
    print_name(label, n);
    printf("%12.4f %12.4f %9.2f %-6s %9d %6d %6d %5d", median / 1e6, ns[0] / 1e6,
           (double)items / median, unit, resources->registers, resources->local, resources->shared,
           resources->warps);
    end_row();
}

void report_expected(struct report *report, const char *label, uint64_t n, double value,
                     double expected, double error, double spread)
{
    static const char columns[] = "            value         expected  st. error   off  spread";
    const double off = (value - expected) / error;
    add_row(report, label, n,
            json_pack("{s:f, s:f, s:f, s:f, s:f}", "value", value, "expected", expected,
                      "standard_error", error, "off", off, "spread", spread));
    print_heading(columns);
    print_name(label, n);
    printf("%17.12g %16.12g %10.2e %5.2f %7.4f", value, expected, error, off, spread);
    end_row();
}

int report_end(struct report *report)
{
    int failed = 0;
    if (report->path &&
        json_dump_file(report->root, report->path, JSON_INDENT(1) | JSON_REAL_PRECISION(12)) != 0) {
        fprintf(stderr, "%s: cannot write the report\n", report->path);
        failed = 1;
    }
    json_decref(report->root);
    free(report);
    return failed;
}
