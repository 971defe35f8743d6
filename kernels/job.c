/* SPDX-License-Identifier: MIT
 *
 * What is the same for a job on every backend.
 */
#include "backend.h"
#include "shuf/domain.h"

bool shuf__backend_is_quick(const struct shuf__backend_ops *ops, const struct shuf__job *job)
{
    uint64_t domain = UINT64_C(1) << shuf_domain_bits(job->n);
    return job->rows <= ops->quick / domain;
}

shuf_status shuf__backend_permute(struct shuf__backend *backend, const struct shuf__job *job,
                                  struct shuf__block *block, uint64_t *device_ns,
                                  struct shuf__error *error)
{
    shuf_status status = backend->ops->launch(backend, job, block, error);
    for (bool done = false; status == SHUF_OK && !done;)
        status = backend->ops->wait(backend, UINT64_MAX, &done, device_ns, error);
    return status;
}
