/* SPDX-License-Identifier: MIT
 *
 * See device.h: without CUDA there is no device.
 */
#include "device.h"

#include <assert.h>

shuf_status shuf__device_open(const char *spec, struct shuf__device **device,
                              struct shuf__error *error)
{
    (void)device;
    return shuf__fail(error, SHUF_DEVICE, "--backend %.64s: this build has no CUDA", spec);
}

void shuf__device_close(struct shuf__device *device)
{
    (void)device;
}

const char *shuf__device_name(const struct shuf__device *device)
{
    (void)device;
    return "none";
}

uint64_t shuf__device_rows_at_once(uint32_t n)
{
    (void)n;
    return 1;
}

shuf_status shuf__device_count_rows(struct shuf__device *device,
                                    const struct shuf__device_rows *rows,
                                    struct shuf__parallelograms *counted, struct shuf__error *error)
{
    (void)device, (void)rows, (void)counted;
    return shuf__fail(error, SHUF_DEVICE, "this build has no CUDA");
}

shuf_status shuf__device_count_stream(struct shuf__device *device,
                                      const struct shuf__device_stream *stream,
                                      struct shuf__error *error)
{
    (void)device, (void)stream;
    return shuf__fail(error, SHUF_DEVICE, "this build has no CUDA");
}

shuf_status shuf__device_count_subsets(struct shuf__device *device,
                                       const struct shuf__device_stream *stream, double t,
                                       double mean, double scale, double *gram,
                                       struct shuf__error *error)
{
    (void)device, (void)stream, (void)t, (void)mean, (void)scale, (void)gram;
    return shuf__fail(error, SHUF_DEVICE, "this build has no CUDA");
}
