/* SPDX-License-Identifier: MIT
 *
 * A progress line on stderr, five times a second.
 */
#ifndef SHUF__QUALITY_PROGRESS_H
#define SHUF__QUALITY_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct shuf__quality_progress {
    bool enabled;
    uint32_t n;       /* 0: the line has no n */
    uint64_t all;     /* UINT64_MAX: unknown */
    const char *unit; /* "rows" */
    uint64_t start_ns, shown_ns;
};

/* Starts the clock. The caller has set the first four fields. */
void shuf__quality_progress_start(struct shuf__quality_progress *progress);
void shuf__quality_progress_show(struct shuf__quality_progress *progress, uint64_t done);

/* Clears the line. */
void shuf__quality_progress_end(const struct shuf__quality_progress *progress);

/* Seconds since the start. */
double shuf__quality_progress_seconds(const struct shuf__quality_progress *progress);

#endif
