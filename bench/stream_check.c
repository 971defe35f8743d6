/* SPDX-License-Identifier: MIT
 *
 * See stream_check.h.
 */
#include "stream_check.h"

#include "draws.h"
#include "shuf/fingerprint.h"

enum { SAMPLES = 1000, FIRST = 10000 };

static uint64_t bits_at(const struct shuf__request *request, uint64_t i)
{
    const struct shuf__stream *s = &request->stream;
    const struct draw draw = {s->distribution, request->dtype, s->seed, s->stream,
                              s->offset + i,   s->mean,        s->std,  s->bound};
    return draw_bits(&draw);
}

static shuf_status check_samples(struct shuf__backend *backend, const struct shuf__block *block,
                                 const struct shuf__request *request, struct shuf__error *error)
{
    const struct shuf__shape shape = shuf__request_shape(request);
    for (uint64_t k = 0; k < SAMPLES; k++) {
        const uint64_t i = shuf_fingerprint_term(k, 0) % shape.count,
                       expected = bits_at(request, i);
        uint64_t found = 0; /* the value is in the lower bytes */
        if (backend->ops->read(backend, block, i * shape.width, shape.width, &found, error))
            return error->status;
        if (found != expected)
            return shuf__fail(error, SHUF_INTERNAL, "value %llu is %#llx, expected %#llx",
                              (unsigned long long)i, (unsigned long long)found,
                              (unsigned long long)expected);
    }
    return SHUF_OK;
}

shuf_status stream_check(struct shuf__backend *backend, const struct shuf__block *block,
                         const struct shuf__request *request, struct shuf__error *error)
{
    uint64_t found, expected = 0;
    const struct shuf__shape shape = shuf__request_shape(request);
    const uint64_t count = shape.count < FIRST ? shape.count : FIRST;
    for (uint64_t i = 0; i < count; i++)
        expected += shuf_fingerprint_term(i, bits_at(request, i));
    if (backend->ops->fingerprint(backend, block, (unsigned)shape.width, count, 0, &found, error))
        return error->status;
    if (found != expected)
        return shuf__fail(
            error, SHUF_INTERNAL, "fingerprint of %llu values is %#llx, expected %#llx",
            (unsigned long long)count, (unsigned long long)found, (unsigned long long)expected);
    return check_samples(backend, block, request, error);
}
