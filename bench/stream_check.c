/* SPDX-License-Identifier: MIT
 *
 * See stream_check.h.
 */
#include "stream_check.h"

#include "draws.h"
#include "shuf/fingerprint.h"

enum { SAMPLES = 1000, FIRST = 10000 };

static uint64_t bits_at(const struct shuf__job *job, uint64_t i)
{
    const struct draw draw = {
        job->distribution, job->dtype, job->seed, job->epoch, job->offset + i, job->mean, job->std,
    };
    return draw_bits(&draw);
}

static shuf_status check_samples(struct shuf__backend *backend, const struct shuf__block *block,
                                 const struct shuf__job *job, struct shuf__error *error)
{
    for (uint64_t k = 0; k < SAMPLES; k++) {
        const uint64_t i = shuf_fingerprint_term(k, 0) % job->count, wanted = bits_at(job, i);
        uint64_t found = 0; /* its lower bytes are the value */
        if (backend->ops->read(backend, block, i * job->width, job->width, &found, error))
            return error->status;
        if (found != wanted)
            return shuf__fail(error, SHUF_INTERNAL, "value %llu is %#llx, expected %#llx",
                              (unsigned long long)i, (unsigned long long)found,
                              (unsigned long long)wanted);
    }
    return SHUF_OK;
}

shuf_status stream_check(struct shuf__backend *backend, const struct shuf__block *block,
                         const struct shuf__job *job, struct shuf__error *error)
{
    uint64_t found, wanted = 0;
    const uint64_t count = job->count < FIRST ? job->count : FIRST;
    for (uint64_t i = 0; i < count; i++)
        wanted += shuf_fingerprint_term(i, bits_at(job, i));
    if (backend->ops->fingerprint(backend, block, job->width, count, &found, error))
        return error->status;
    if (found != wanted)
        return shuf__fail(
            error, SHUF_INTERNAL, "fingerprint of %llu values is %#llx, expected %#llx",
            (unsigned long long)count, (unsigned long long)found, (unsigned long long)wanted);
    return check_samples(backend, block, job, error);
}
