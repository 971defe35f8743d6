/* SPDX-License-Identifier: MIT
 *
 * See cost.h.
 */
#include "cost.h"

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { FIRST_BITS = 8, LAST_BITS = 33 };

struct cost {
    FILE *file;
    char *path;
};

uint64_t cost_size(unsigned index)
{
    const unsigned bits = FIRST_BITS + index / 3;
    return bits > LAST_BITS ? 0 : (UINT64_C(1) << bits) + index % 3 - 1;
}

struct cost *cost_begin(const char *path)
{
    struct cost *cost = calloc(1, sizeof *cost);
    if (!cost || !(cost->path = strdup(path)))
        abort();
    cost->file = fopen(path, "we");
    if (!cost->file) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        exit(1);
    }
    fprintf(cost->file, "device,algorithm,n,count,ns_per_value\n");
    return cost;
}

static void put_name(struct cost *cost, const char *name)
{
    for (; *name; name++)
        if (!strchr(",\"'", *name))
            fputc(*name, cost->file);
    fputc(',', cost->file);
}

void cost_add(struct cost *cost, const char *device, const char *algorithm, uint64_t n,
              uint64_t count, double ns_per_value)
{
    put_name(cost, device);
    put_name(cost, algorithm);
    fprintf(cost->file, "%llu,%llu,%.6g\n", (unsigned long long)n, (unsigned long long)count,
            ns_per_value);
    fflush(cost->file);
    printf("%-44s %12llu %12.4f ns a value\n", algorithm, (unsigned long long)n, ns_per_value);
    fflush(stdout);
}

/* Returns FILE.svg for FILE.csv. */
static char *picture_of(const char *path)
{
    const size_t length = strlen(path);
    const char *end = length > 4 ? path + length - 4 : path + length;
    char *picture;
    if (asprintf(&picture, "%.*s.svg", (int)(strcmp(end, ".csv") == 0 ? length - 4 : length),
                 path) < 0)
        abort();
    return picture;
}

static int draw(const char *path)
{
    char *picture = picture_of(path);
    const char *const argv[] = {"gnuplot", "-c", BENCH_COST_GP, path, picture, NULL};
    pid_t pid;
    int status = 0;
    if (posix_spawnp(&pid, argv[0], NULL, NULL, (char **)argv, environ) != 0)
        printf("gnuplot is not installed: %s is not drawn\n", picture);
    else if (waitpid(pid, &status, 0) < 0 || status != 0)
        status = 1;
    free(picture);
    return status != 0;
}

int cost_end(struct cost *cost)
{
    int failed = ferror(cost->file) | fclose(cost->file);
    if (failed)
        fprintf(stderr, "%s: cannot write the file\n", cost->path);
    else
        failed = draw(cost->path);
    free(cost->path);
    free(cost);
    return failed != 0;
}
