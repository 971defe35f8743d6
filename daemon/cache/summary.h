/* SPDX-License-Identifier: MIT
 *
 * The summary of a result, computed where the values are by the thread that drives the backend.
 */
#ifndef SHUFD_SUMMARY_H
#define SHUFD_SUMMARY_H

#include "cache.h"

#include <stdbool.h>

/* The parts of the summary that a job computes. */
struct shuf__compute_options {
    bool fingerprint, sums, samples;
    uint64_t fingerprint_index; /* of the first value; 0 unless the result is a part */
    bool event; /* finish when the result is launched, with an IPC event, not when it is ready */
};

/* Whether the entry is ready and its summary has these parts. */
bool shuf__summary_has(const struct shuf__cache_entry *entry,
                       const struct shuf__compute_options *options);

/* Whether the summary has the fingerprint, if the options ask for one. */
bool shuf__summary_has_fingerprint(const struct shuf__summary *summary,
                                   const struct shuf__compute_options *options);

/* Adds the missing parts to *summary, for a result whose values are there. */
shuf_status shuf__summary_complete(struct shuf__backend *backend,
                                   const struct shuf__cache_entry *entry,
                                   const struct shuf__compute_options *options,
                                   struct shuf__summary *summary, struct shuf__error *error);

/* Reads at most SHUF__SAMPLES values of the block, from number `first` on, as bits. */
shuf_status shuf__summary_read(struct shuf__backend *backend, const struct shuf__block *block,
                               shuf_dtype dtype, uint64_t first, size_t count, uint64_t *values,
                               struct shuf__error *error);

/* The sums are of z = (x - centre) * scale: with the distribution's own mean and standard deviation
 * they lose little precision. */
struct shuf__measure {
    double centre, scale;
};

struct shuf__measure shuf__measure_of(const struct shuf__request *request);

#endif
