/* SPDX-License-Identifier: MIT
 *
 * See draw.h. A panel shows the magnitude of the discrepancy and the edges of both acceptance
 * regions. The horizontal axis is the number of rounds if it varies, else n.
 */
#include "draw.h"

#include "picture.h"

#include <math.h>
#include <stdbool.h>

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

static void write_script(FILE *to, const void *context)
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
    return shuf__picture(path, write_script, &panels);
}
