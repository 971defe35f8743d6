/* SPDX-License-Identifier: MIT
 *
 * The picture of a stream. It shows the histogram with the density, and for each limit the number
 * of values beyond it, divided by the expected number.
 */
#include "stream_report.h"

#include "picture.h"

#include <inttypes.h>
#include <math.h>

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

static void write_script(FILE *to, const void *context)
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
    return shuf__picture(path, write_script, report);
}
