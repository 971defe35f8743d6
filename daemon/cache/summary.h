/* SPDX-License-Identifier: MIT
 *
 * What is told of a result beside its values: made where they are, by the thread
 * that drives the backend.
 */
#ifndef SHUFD_SUMMARY_H
#define SHUFD_SUMMARY_H

#include "cache.h"

#include <stdbool.h>

/* What is wanted of a result. */
struct shuf__compute_options {
    bool fingerprint, sums, edges;
    bool event; /* tell when it is launched, with an IPC event, rather than when it is there */
};

/* Whether all that is wanted is there. */
bool shuf__described(const struct shuf__cache_entry *result,
                     const struct shuf__compute_options *want);

/* Adds to *to what is wanted and lacking there, of a result whose values are there. */
shuf_status shuf__describe(struct shuf__backend *backend, const struct shuf__cache_entry *result,
                           const struct shuf__compute_options *want, struct shuf__summary *to,
                           struct shuf__error *error);

/* The z = (x - centre) * scale of which sums are taken: by the distribution's own mean and
 * standard deviation, so that little is lost in the sums. */
struct shuf__measure {
    double centre, scale;
};

struct shuf__measure shuf__measure_of(const struct shuf__request *request);

#endif
