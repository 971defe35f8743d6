/* SPDX-License-Identifier: MIT
 *
 * A progress bar on stderr while values arrive, where stderr is a terminal.
 */
#ifndef SHUF__PROGRESS_H
#define SHUF__PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct shuf__progress {
    bool shown;
    uint64_t total, done; /* bytes */
    uint64_t start_ns, next_ns;
};

/* enabled: false hides the bar, as when the values go to the same terminal. */
void shuf__progress_start(struct shuf__progress *progress, uint64_t total, bool enabled);
void shuf__progress_add(struct shuf__progress *progress, uint64_t bytes);

/* Clears the line. */
void shuf__progress_end(struct shuf__progress *progress);

#endif
