/* SPDX-License-Identifier: MIT
 *
 * See draw.h. A panel shows the size of the discrepancy, by the number of rounds
 * where that varies and else by n, and the edges of both acceptance regions.
 */
#include "draw.h"

#include "fail.h"

#include <errno.h>
#include <math.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

static const char *title_of(const json_t *report)
{
    const json_t *source = json_object_get(report, "source");
    const char *name = json_string_value(json_object_get(source, "generator"));
    if (!name)
        name = json_string_value(json_object_get(source, "algorithm"));
    return name ? name : "shufd";
}

static bool is_sweep(const json_t *report)
{
    return json_is_true(json_object_get(report, "sweep"));
}

static double number(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

/* A block of data for gnuplot: x, |mmd|, the edges. One n's points, or all. */
static void write_block(FILE *to, const json_t *points, unsigned panel, double n, bool sweep)
{
    size_t i;
    const json_t *point;
    fprintf(to, "$d%u_%.0f << E\n", panel, sweep ? n : 0);
    json_array_foreach(points, i, point)
    {
        if (sweep && number(point, "n") != n)
            continue;
        fprintf(to, "%.0f %.9g %.9g %.9g\n", number(point, sweep ? "rounds" : "n"),
                fmax(fabs(number(point, "mmd")), 1e-12),
                number(json_object_get(point, "normal"), "high"),
                number(json_object_get(point, "hoeffding"), "high"));
    }
    fprintf(to, "E\n");
}

static bool is_first(const json_t *points, size_t at)
{
    const double n = number(json_array_get(points, at), "n");
    for (size_t i = 0; i < at; i++)
        if (number(json_array_get(points, i), "n") == n)
            return false;
    return true;
}

/* The regions depend on n hardly visibly, so one pair of edges stands for all. */
static void plot_sweep(FILE *to, const json_t *points, unsigned panel)
{
    size_t i;
    const json_t *point;
    const char *comma = "";
    json_array_foreach(points, i, point) if (is_first(points, i))
        write_block(to, points, panel, number(point, "n"), true);
    fprintf(to, "plot ");
    json_array_foreach(points, i, point) if (is_first(points, i))
    {
        const double n = number(point, "n");
        fprintf(to, "%s$d%u_%.0f using 1:2 with linespoints pt 7 ps 0.4 title 'n = %.0f'", comma,
                panel, n, n);
        comma = ", ";
    }
    json_array_foreach(points, i, point) if (is_first(points, i))
    {
        const double n = number(point, "n");
        fprintf(to, ", $d%u_%.0f using 1:3 with lines dt 2 lc rgb 'gray50' %s", panel, n,
                i == 0 ? "title 'normal'" : "notitle");
        if (i == 0)
            fprintf(to, ", $d%u_%.0f using 1:4 with lines dt 4 lc rgb 'gray20' title 'Hoeffding'",
                    panel, n);
    }
    fprintf(to, "\n");
}

static void plot_sizes(FILE *to, const json_t *points, unsigned panel)
{
    write_block(to, points, panel, 0, false);
    fprintf(to,
            "plot $d%u_0 using 1:2 with linespoints pt 7 ps 0.4 title '|MMD^2|', "
            "$d%u_0 using 1:3 with lines dt 2 lc rgb 'gray50' title 'normal', "
            "$d%u_0 using 1:4 with lines dt 4 lc rgb 'gray20' title 'Hoeffding'\n",
            panel, panel, panel);
}

static void plot(FILE *to, const json_t *report, unsigned panel)
{
    const json_t *points = json_object_get(report, "points");
    const bool sweep = is_sweep(report);
    fprintf(to, "set title '%s' noenhanced\nset xlabel '%s'\n%s\n", title_of(report),
            sweep ? "rounds" : "n", sweep ? "unset logscale x" : "set logscale x");
    (sweep ? plot_sweep : plot_sizes)(to, points, panel);
}

static void write_script(FILE *to, json_t *const *reports, unsigned count)
{
    const unsigned columns = count > 1 ? 2 : 1, rows = (count + columns - 1) / columns;
    fprintf(to,
            "set terminal svg size %u,%u background 'white' font 'sans,12'\n"
            "set logscale y\nset format y '10^{%%L}'\nset ylabel '|MMD^2|'\nset key outside right\n"
            "set multiplot layout %u,%u\n",
            columns * 560, rows * 360, rows, columns);
    for (unsigned i = 0; i < count; i++)
        plot(to, reports[i], i);
    fprintf(to, "unset multiplot\n");
}

/* Between files: a pipe to a program that is not there, or ends early, would end this one. */
static int run_gnuplot(FILE *script, FILE *picture, const char *path)
{
    static char name[] = "gnuplot";
    char *argv[] = {name, NULL};
    posix_spawn_file_actions_t actions;
    pid_t pid;
    int status;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fileno(script), STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, fileno(picture), STDOUT_FILENO);
    const int error = posix_spawnp(&pid, name, &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0)
        return shuf__quality_fail(EX_CANTCREAT, "%.256s: gnuplot: %s; expected it in PATH", path,
                                  strerror(error));
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status == 0
               ? EX_OK
               : shuf__quality_fail(EX_CANTCREAT, "%.256s: gnuplot could not draw it", path);
}

static int draw(FILE *script, FILE *picture, const char *path, json_t *const *reports,
                unsigned count)
{
    write_script(script, reports, count);
    if (fflush(script) != 0 || fseek(script, 0, SEEK_SET) != 0)
        return shuf__quality_fail(EX_CANTCREAT, "a temporary file: %s", strerror(errno));
    return run_gnuplot(script, picture, path);
}

/* Only a whole picture takes the place of what was there. */
static int keep(FILE *picture, const char *path)
{
    char bytes[4096];
    size_t got;
    FILE *to = fopen(path, "w");
    bool kept = to != NULL;
    rewind(picture);
    while (kept && (got = fread(bytes, 1, sizeof bytes, picture)) > 0)
        kept = fwrite(bytes, 1, got, to) == got;
    if (to && fclose(to) != 0)
        kept = false;
    return kept ? EX_OK : shuf__quality_fail(EX_CANTCREAT, "%.256s: %s", path, strerror(errno));
}

int shuf__draw(const char *path, json_t *const *reports, unsigned count)
{
    FILE *script = tmpfile(), *picture = tmpfile();
    int code = script && picture
                   ? draw(script, picture, path, reports, count)
                   : shuf__quality_fail(EX_CANTCREAT, "a temporary file: %s", strerror(errno));
    if (code == EX_OK)
        code = keep(picture, path);
    if (script)
        fclose(script);
    if (picture)
        fclose(picture);
    return code;
}
