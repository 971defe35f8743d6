/* SPDX-License-Identifier: MIT
 *
 * A request that asks only for the summary of a large result. The job computes the values part
 * by part, and adds each part to the summary. So it needs memory for only one part.
 */
#ifndef SHUFD_SUMMARY_JOB_H
#define SHUFD_SUMMARY_JOB_H

#include "result_request.h"

/* Whether this job serves the request: it asks only for the summary of a large result. Call it if
 * the result is not in the cache. */
bool shuf__summary_job_applies(const struct shuf__result_request *r);

/* Submits the job, which sends the reply. Fails with SHUF_NO_MEMORY if the result is so large that
 * other requests would wait too long. The client then requests parts. Fails with SHUF_BUSY when the
 * queue is full. */
shuf_status shuf__summary_job_submit(const struct shuf__result_request *r,
                                     struct shuf__error *error);

#endif
