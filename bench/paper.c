/* SPDX-License-Identifier: MIT
 *
 * See paper.h.
 */
#include "paper.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct state {
    struct paper paper; /* first member: a pointer to it points to this struct too */
    const char *only, *csv_path;
    char *device;
    FILE *csv;
    bool wrong;
};

static struct state *state_of(struct paper *paper)
{
    return (struct state *)paper;
}

static void read_sizes(struct paper *paper, const char *text)
{
    int end = 0;
    if (sscanf(text, "%u:%u%n", &paper->first, &paper->last, &end) != 2 || text[end] != '\0' ||
        paper->first < 4 || paper->first > paper->last || paper->last > 30) {
        fprintf(stderr, "--sizes: %s: expected FIRST:LAST, both from 4 to 30, as in 8:29\n", text);
        exit(64);
    }
}

static FILE *create(const char *path)
{
    FILE *file = fopen(path, "we");
    if (!file) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        exit(1);
    }
    fprintf(file, "device,algorithm,n,million_items_per_s\n");
    return file;
}

struct paper *paper_begin(const char *title, int argc, char **argv)
{
    struct state *s = calloc(1, sizeof *s);
    if (!s)
        abort();
    const char *sizes = NULL;
    const struct report_option options[] = {{"--csv", "FILE.csv", &s->csv_path},
                                            {"--only", "ROW,ROW...", &s->only},
                                            {"--sizes", "FIRST:LAST", &sizes},
                                            {0}};
    s->paper.first = PAPER_FIRST;
    s->paper.last = PAPER_LAST;
    s->paper.report = report_begin_with(title, options, argc, argv);
    if (sizes)
        read_sizes(&s->paper, sizes);
    if (s->csv_path)
        s->csv = create(s->csv_path);
    return &s->paper;
}

void paper_device(struct paper *paper, const char *device)
{
    struct state *s = state_of(paper);
    char *to = malloc(strlen(device) + 1);
    if (!to)
        abort();
    free(s->device);
    s->device = to;
    for (; *device; device++)
        if (!strchr(",\"'", *device)) /* these have a meaning in the CSV file */
            *to++ = *device;
    *to = '\0';
}

bool paper_wants(const struct paper *paper, const char *row)
{
    const char *only = ((const struct state *)paper)->only;
    const size_t length = strlen(row);
    for (const char *at = only; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, row, length) == 0 && (at[length] == ',' || at[length] == '\0'))
            return true;
    }
    return !only;
}

void paper_add(struct paper *paper, const char *row, uint64_t n, double *ns, size_t trials)
{
    struct state *s = state_of(paper);
    report_add(paper->report, row, n, n, "items", 16 * n, ns, trials);
    if (!s->csv)
        return;
    /* ns[] is sorted */
    const double median = (ns[trials / 2] + ns[(trials - 1) / 2]) / 2;
    fprintf(s->csv, "%s,%s,%llu,%.6g\n", s->device, row, (unsigned long long)n,
            (double)n * 1e3 / median);
    fflush(s->csv);
}

void paper_skip(struct paper *paper, const char *row, uint64_t n, const char *why)
{
    (void)paper;
    printf("%-44s %12llu skipped: %s\n", row, (unsigned long long)n, why);
    fflush(stdout);
}

void paper_wrong(struct paper *paper, const char *row, uint64_t n, const char *why)
{
    state_of(paper)->wrong = true;
    fprintf(stderr, "%s, n = %llu: %s\n", row, (unsigned long long)n, why);
}

int paper_end(struct paper *paper)
{
    struct state *s = state_of(paper);
    int failed = s->wrong | report_end(paper->report);
    if (s->csv && (ferror(s->csv) | fclose(s->csv))) {
        fprintf(stderr, "%s: cannot write the file\n", s->csv_path);
        failed = 1;
    }
    free(s->device);
    free(s);
    return failed;
}
