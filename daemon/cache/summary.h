/* SPDX-License-Identifier: MIT
 *
 * The summary of a result. The thread that drives the backend computes it on the device that has
 * the values.
 */
#ifndef SHUFD_SUMMARY_H
#define SHUFD_SUMMARY_H

#include "cache.h"

#include <stdbool.h>

/* The parts of the summary that a job computes. */
struct shuf__compute_options {
    bool fingerprint, sums, samples;
    uint64_t fingerprint_index; /* number of the first value; not 0 only if the result is a part */
    bool event; /* call `finished` with an IPC event once the computation is launched */
};

/* Whether the entry is ready and its summary has these parts. */
bool shuf__summary_has(const struct shuf__cache_entry *entry,
                       const struct shuf__compute_options *options);

/* True if the options request no fingerprint, or the summary has it. */
bool shuf__summary_has_fingerprint(const struct shuf__summary *summary,
                                   const struct shuf__compute_options *options);

/* Adds the parts that *summary lacks. The values of the entry must be computed. */
shuf_status shuf__summary_complete(struct shuf__backend *backend,
                                   const struct shuf__cache_entry *entry,
                                   const struct shuf__compute_options *options,
                                   struct shuf__summary *summary, struct shuf__error *error);

/* Reads at most SHUF__SAMPLES values of the block, from number `first` on, as bits. */
shuf_status shuf__summary_read(struct shuf__backend *backend, const struct shuf__block *block,
                               shuf_dtype dtype, uint64_t first, size_t count, uint64_t *values,
                               struct shuf__error *error);

/* The sums are over z = (x - centre) * scale. The centre is the distribution's mean, and the scale
 * is 1 divided by its standard deviation, so the sums lose little precision. */
struct shuf__measure {
    double centre, scale;
};

struct shuf__measure shuf__measure_of(const struct shuf__request *request);

#endif
