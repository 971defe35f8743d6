/* SPDX-License-Identifier: MIT
 *
 * See progress.h.
 */
#include "progress.h"

#include "clock.h"
#include "units.h"

#include <stdio.h>
#include <unistd.h>

enum { BAR = 30 };
static const uint64_t interval_ns = 100000000;

void shuf__progress_start(struct shuf__progress *progress, uint64_t total, bool enabled)
{
    uint64_t now = shuf__clock_ns();
    *progress = (struct shuf__progress){
        .shown = enabled && total > 0 && isatty(STDERR_FILENO),
        .total = total,
        .start_ns = now,
        .next_ns = now + interval_ns, /* a fast transfer shows no bar */
    };
}

static void draw_bar(const struct shuf__progress *progress, uint64_t now)
{
    static const char full[] = "##############################";
    static const char none[] = "..............................";
    char done[SHUF__UNITS_TEXT], total[SHUF__UNITS_TEXT], rate[SHUF__UNITS_TEXT];
    double part = (double)progress->done / (double)progress->total;
    double seconds = (double)(now - progress->start_ns) / 1e9;
    int filled = (int)(part * BAR);
    fprintf(stderr, "\r[%.*s%.*s] %3d%%  %s of %s  %s/s \033[K", filled, full, BAR - filled, none,
            (int)(part * 100), shuf__units_bytes(done, progress->done),
            shuf__units_bytes(total, progress->total),
            shuf__units_bytes(rate, (uint64_t)((double)progress->done / seconds)));
}

void shuf__progress_add(struct shuf__progress *progress, uint64_t bytes)
{
    progress->done += bytes;
    if (!progress->shown)
        return;
    uint64_t now = shuf__clock_ns();
    if (now < progress->next_ns)
        return;
    draw_bar(progress, now);
    progress->next_ns = now + interval_ns;
}

void shuf__progress_end(struct shuf__progress *progress)
{
    if (progress->shown)
        fputs("\r\033[K", stderr);
    progress->shown = false;
}
