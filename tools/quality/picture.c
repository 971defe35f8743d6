/* SPDX-License-Identifier: MIT
 *
 * See picture.h.
 */
#include "picture.h"

#include "report.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

/* ---- gnuplot ---- */

/* Runs gnuplot with files for input and output. A pipe would end this process if gnuplot did not
 * exist or ended early. With -d it reads no file of settings. */
static int run_gnuplot(FILE *script, FILE *picture, const char *path)
{
    static char name[] = "gnuplot", plain[] = "-d";
    char *argv[] = {name, plain, NULL};
    posix_spawn_file_actions_t actions;
    pid_t pid;
    int status;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fileno(script), STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, fileno(picture), STDOUT_FILENO);
    const int error = posix_spawnp(&pid, name, &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0)
        return shuf__fail_with(EX_CANTCREAT, "%.256s: gnuplot: %s; expected it in PATH", path,
                               strerror(error));
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status == 0 ? EX_OK
                       : shuf__fail_with(EX_CANTCREAT, "%.256s: gnuplot could not draw it", path);
}

/* Replaces the old file by the new one, but only if the picture is complete. */
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
    return kept ? EX_OK : shuf__fail_with(EX_CANTCREAT, "%.256s: %s", path, strerror(errno));
}

/* Whether a new file can be created in its directory. */
static bool may_create(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *directory =
        slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
    const bool may = directory && access(directory, W_OK | X_OK) == 0;
    free(directory);
    return may;
}

int shuf__picture_check(const char *path)
{
    struct stat status;
    bool may;
    if (stat(path, &status) == 0 && S_ISDIR(status.st_mode)) {
        errno = EISDIR;
        may = false;
    } else {
        may = access(path, W_OK) == 0 || (errno == ENOENT && *path && may_create(path));
    }
    return may ? EX_OK
               : shuf__fail_with(EX_CANTCREAT, "--plot %.256s: %s", *path ? path : "''",
                                 strerror(errno));
}

int shuf__picture(const char *path, void (*write_script)(FILE *to, const void *context),
                  const void *context)
{
    FILE *script = tmpfile(), *picture = tmpfile();
    bool written = script && picture;
    if (written) {
        write_script(script, context);
        written = fflush(script) == 0 && fseek(script, 0, SEEK_SET) == 0;
    }
    int code = written ? run_gnuplot(script, picture, path)
                       : shuf__fail_with(EX_CANTCREAT, "a temporary file: %s", strerror(errno));
    if (code == EX_OK)
        code = keep(picture, path);
    if (script)
        fclose(script);
    if (picture)
        fclose(picture);
    return code;
}

/* ---- Rounds ---- */

/* A panel shows the magnitude of the discrepancy and the edges of both acceptance regions. The
 * horizontal axis is the number of rounds if it varies, else n. */

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

/* A block of data for gnuplot: x, |mmd|, the edges. It has the points of one n, or all. */
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

/* The regions hardly depend on n, so one pair of edges is drawn for all. */
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

struct panels {
    json_t *const *reports;
    unsigned count;
};

static void rounds_write_script(FILE *to, const void *context)
{
    const struct panels *panels = context;
    const unsigned count = panels->count;
    const unsigned columns = count > 1 ? 2 : 1, rows = (count + columns - 1) / columns;
    fprintf(to,
            "set terminal svg size %u,%u background 'white' font 'sans,12'\n"
            "set logscale y\nset format y '10^{%%L}'\nset ylabel '|MMD^2|'\nset key outside right\n"
            "set multiplot layout %u,%u\n",
            columns * 560, rows * 360, rows, columns);
    for (unsigned i = 0; i < count; i++)
        plot(to, panels->reports[i], i);
    fprintf(to, "unset multiplot\n");
}

int shuf__draw(const char *path, json_t *const *reports, unsigned count)
{
    const struct panels panels = {reports, count};
    return shuf__picture(path, rounds_write_script, &panels);
}

/* ---- Streams ---- */

/* The picture of a stream. It shows the histogram with the density, and for each limit the number
 * of values beyond it, divided by the expected number. */

/* Writes the middle of a cell, its count and its expected count. */
static void write_histogram(FILE *to, const struct shuf__stream_report *report)
{
    fprintf(to, "$h << E\n");
    for (unsigned k = 0; k < SHUF__HISTOGRAM_CELLS; k++)
        fprintf(to, "%.9g %" PRIu64 " %.9g\n",
                SHUF__HISTOGRAM_LOW + (k + 0.5) * SHUF__HISTOGRAM_WIDTH,
                report->outcome.histogram[k],
                (double)report->outcome.values * shuf__stream_cell_p(report->law, k));
    fprintf(to, "E\n");
}

/* Writes a limit, the ratio of the counts beyond it on each side, and the ratio's standard
 * deviation. */
static void write_tails(FILE *to, const struct shuf__stream_report *report)
{
    double count[2] = {0}, expected[2] = {0};
    fprintf(to, "$t << E\n");
    for (unsigned k = SHUF__HISTOGRAM_CELLS; k-- > SHUF__HISTOGRAM_CELLS / 2;) {
        const unsigned cell[2] = {k, SHUF__HISTOGRAM_CELLS - 1 - k};
        const double limit = SHUF__HISTOGRAM_LOW + k * SHUF__HISTOGRAM_WIDTH;
        for (int side = 0; side < 2; side++) {
            count[side] += (double)report->outcome.histogram[cell[side]];
            expected[side] +=
                (double)report->outcome.values * shuf__stream_cell_p(report->law, cell[side]);
        }
        if (limit >= 3 && expected[0] >= 1)
            fprintf(to, "%.9g %.9g %.9g %.9g\n", limit, count[0] / expected[0],
                    count[1] / expected[1], 1 / sqrt(expected[0]));
    }
    fprintf(to, "E\n");
}

static void stream_write_script(FILE *to, const void *context)
{
    const struct shuf__stream_report *report = context;
    const double reach = report->law->uniform ? 1.8 : 7;
    char origin[256];
    shuf__stream_origin_text(report->origin, origin, sizeof origin);
    write_histogram(to, report);
    fprintf(to,
            "set terminal svg size %u,360 background 'white' font 'sans,12'\n"
            "set multiplot layout 1,%u\nset title '%s' noenhanced\n"
            "set xlabel 'z'\nset ylabel 'values in 1/32'\nset logscale y\n"
            "set format y '10^{%%L}'\nset xrange [%g:%g]\nset yrange [0.5:*]\nset key below\n"
            "plot $h using 1:($2 > 0 ? $2 : NaN) with points pt 7 ps 0.25 title 'values', "
            "$h using 1:3 with lines lc rgb 'gray20' title 'expected'\n",
            report->law->uniform ? 560 : 1120, report->law->uniform ? 1 : 2, origin, -reach, reach);
    if (!report->law->uniform) {
        write_tails(to, report);
        fprintf(to,
                "set title 'beyond a limit'\nset xlabel 'limit'\nset ylabel 'values / expected'\n"
                "unset logscale y\nset format y '%%g'\nset xrange [3:*]\nset yrange [0:2]\n"
                "plot $t using 1:(1 - 2 * $4):(1 + 2 * $4) with filledcurves lc rgb 'gray80' "
                "title 'two deviations', $t using 1:2 with points pt 7 ps 0.4 title 'above', "
                "$t using 1:3 with points pt 6 ps 0.4 title 'below', 1 with lines lc rgb 'gray20' "
                "notitle\n");
    }
    fprintf(to, "unset multiplot\n");
}

int shuf__stream_draw(const struct shuf__stream_report *report, const char *path)
{
    return shuf__picture(path, stream_write_script, report);
}
