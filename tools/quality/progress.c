/* SPDX-License-Identifier: MIT
 *
 * See progress.h.
 */
#include "progress.h"

#include "clock.h"

#include <inttypes.h>
#include <stdio.h>

static const uint64_t interval_ns = 200000000;

void shuf__quality_progress_start(struct shuf__quality_progress *progress)
{
    progress->start_ns = progress->shown_ns = shuf__clock_ns();
}

void shuf__quality_progress_show(struct shuf__quality_progress *progress, uint64_t done)
{
    const uint64_t now = shuf__clock_ns();
    char size[32] = "";
    if (!progress->enabled || now < progress->shown_ns + interval_ns)
        return;
    progress->shown_ns = now;
    if (progress->n != 0)
        snprintf(size, sizeof size, "n = %" PRIu32 ": ", progress->n);
    if (progress->all == UINT64_MAX)
        fprintf(stderr, "\r%s%" PRIu64 " %s \033[K", size, done, progress->unit);
    else
        fprintf(stderr, "\r%s%3.0f%% of %" PRIu64 " %s \033[K", size,
                100.0 * (double)done / (double)progress->all, progress->all, progress->unit);
}

void shuf__quality_progress_end(const struct shuf__quality_progress *progress)
{
    if (progress->shown_ns != progress->start_ns)
        fputs("\r\033[K", stderr);
}

double shuf__quality_progress_seconds(const struct shuf__quality_progress *progress)
{
    return (double)(shuf__clock_ns() - progress->start_ns) / 1e9;
}
