/* SPDX-License-Identifier: MIT
 *
 * See report.h.
 */
#include "report.h"

#include "commit.h"

#include <jansson.h>
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

struct report *report_begin(const char *title, int argc, char **argv)
{
    char date[32];
    time_t now = time(NULL);
    struct report *report = calloc(1, sizeof *report);
    if (!report)
        abort();
    if (argc == 3 && strcmp(argv[1], "--json") == 0)
        report->path = argv[2];
    else if (argc != 1) {
        fprintf(stderr, "usage: %s [--json FILE]\n", argv[0]);
        exit(64);
    }
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
    report->root = json_object();
    report->results = json_array();
    json_object_set_new(report->root, "title", json_string(title));
    json_object_set_new(report->root, "date", json_string(date));
    json_object_set_new(report->root, "commit", json_string(SHUF_COMMIT));
    add_command(report, argc, argv);
    json_object_set_new(report->root, "results", report->results);
    printf("%s (commit %s)\n", title, SHUF_COMMIT);
    return report;
}

void report_fact(struct report *report, const char *name, const char *value)
{
    json_object_set_new(report->root, name, json_string(value));
    printf("%s: %s\n", name, value);
}

static void print_row(const char *what, uint64_t n, double median, double best, double items,
                      const char *unit, double bytes)
{
    static int printed;
    if (!printed++)
        printf("%-44s %12s %12s %12s %14s %10s\n", "", "n", "median ms", "best ms", "G/s", "GB/s");
    printf("%-44s %12llu %12.4f %12.4f %7.2f %-6s", what, (unsigned long long)n, median / 1e6,
           best / 1e6, items / median, unit);
    if (bytes > 0)
        printf(" %10.1f", bytes / median);
    putchar('\n');
    fflush(stdout);
}

void report_add(struct report *report, const char *what, uint64_t n, uint64_t items,
                const char *unit, uint64_t bytes, double *ns, size_t samples)
{
    qsort(ns, samples, sizeof *ns, ascending);
    double median = samples % 2 ? ns[samples / 2] : (ns[samples / 2 - 1] + ns[samples / 2]) / 2;
    json_t *raw = json_array();
    for (size_t i = 0; i < samples; i++)
        json_array_append_new(raw, json_real(ns[i]));
    json_array_append_new(
        report->results, json_pack("{s:s, s:I, s:I, s:s, s:I, s:f, s:o}", "what", what, "n",
                                   (json_int_t)n, "items", (json_int_t)items, "unit", unit, "bytes",
                                   (json_int_t)bytes, "median_ns", median, "samples_ns", raw));
    print_row(what, n, median, ns[0], (double)items, unit, (double)bytes);
}

int report_end(struct report *report)
{
    int failed = 0;
    if (report->path &&
        json_dump_file(report->root, report->path, JSON_INDENT(1) | JSON_REAL_PRECISION(9)) != 0) {
        fprintf(stderr, "%s: cannot be written\n", report->path);
        failed = 1;
    }
    json_decref(report->root);
    free(report);
    return failed;
}
