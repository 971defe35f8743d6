/* SPDX-License-Identifier: MIT
 *
 * See device.h: the backend, and the values that it makes.
 */
#include "device.cuh"

#include <cstring>

namespace quality
{

shuf_status make(shuf__device *device, const shuf__computation &job, uint64_t bytes,
                 shuf__error *error)
{
    const shuf__backend_ops *ops = device->backend->ops;
    const uint64_t whole = (bytes + SHUF__BLOCK_UNIT - 1) / SHUF__BLOCK_UNIT * SHUF__BLOCK_UNIT;
    uint64_t took;
    if (device->values.bytes != whole) {
        if (device->values.memory)
            ops->free(device->backend, &device->values);
        device->values = {};
        const shuf_status status =
            ops->alloc(device->backend, ops->own, whole, &device->values, error);
        if (status != SHUF_OK)
            return status;
    }
    return shuf__backend_compute(device->backend, &job, &device->values, &took, error);
}

shuf_status make(shuf__device *device, const shuf__device_stream *stream, shuf__error *error)
{
    static const struct {
        const char *name;
        shuf_dtype dtype;
    } types[] = {{"f64", SHUF_F64}, {"f32", SHUF_F32}, {"f16", SHUF_F16}, {"bf16", SHUF_BF16}};
    shuf__computation job{};
    shuf__stream &s = job.request.stream;
    job.request.kind = SHUF__STREAM;
    s.distribution = stream->box_muller ? SHUF_DISTRIBUTION_BOX_MULLER : SHUF_DISTRIBUTION_GAUSS;
    s.std = 1;
    s.seed = stream->seed;
    s.stream = stream->stream;
    s.offset = stream->first;
    s.count = stream->count;
    for (const auto &type : types)
        if (strcmp(type.name, stream->dtype) == 0)
            job.request.dtype = type.dtype;
    return make(device, job, shuf__request_shape(&job.request).bytes, error);
}

} // namespace quality

extern "C" shuf_status shuf__device_open(const char *spec, shuf__device **device,
                                         shuf__error *error)
{
    shuf__backend *backend;
    const shuf_status status = shuf__backend_open(spec, 0, &backend, error);
    if (status != SHUF_OK)
        return status;
    if (strcmp(backend->ops->name, "cuda") != 0) {
        backend->ops->close(backend);
        return shuf__fail(error, SHUF_INVALID, "--backend %.64s: expected cuda or cuda:NUMBER",
                          spec);
    }
    *device = new shuf__device{backend, {}};
    return SHUF_OK;
}

extern "C" const char *shuf__device_name(const shuf__device *device)
{
    return device->backend->device;
}

extern "C" void shuf__device_close(shuf__device *device)
{
    if (device->values.memory)
        device->backend->ops->free(device->backend, &device->values);
    device->backend->ops->close(device->backend);
    delete device;
}
