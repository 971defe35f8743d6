/* SPDX-License-Identifier: MIT
 *
 * Weighted draws and samples in the caller's CUDA stream and memory.
 */
#include "cuda.cuh"

#include "local.cuh"
#include "weights.cuh"

#include <cinttypes>

namespace shuf
{

namespace
{

constexpr size_t header = 256; /* bytes of the workspace for numbers that the host reads */

shuf_status workspace_of(size_t bytes, size_t *needed, shuf__error *error)
{
    if (bytes == 0)
        return fail_local(error, cudaGetLastError(), "asking for the workspace");
    *needed = header + bytes;
    return SHUF_OK;
}

shuf_status check_count(uint64_t count, shuf__error *error)
{
    return count <= weights_most
               ? SHUF_OK
               : shuf__fail(error, SHUF_INVALID,
                            "weights: %" PRIu64 " of them, a GPU takes 2^30; expected less, or "
                            "weights in host memory",
                            count);
}

shuf_status table_bytes(uint64_t count, size_t *bytes, shuf__error *error)
{
    return check_count(count, error) ? error->status
                                     : workspace_of(weight_table_bytes(count), bytes, error);
}

shuf_status sample_bytes(uint64_t count, size_t *bytes, shuf__error *error)
{
    return check_count(count, error) ? error->status
                                     : workspace_of(weight_sample_bytes(count), bytes, error);
}

size_t width_of(const shuf__weight_array &weights)
{
    return shuf__dtype_bytes(weights.type);
}

/* Waits for numbers that a kernel writes. */
template <typename Number>
shuf_status take(Number *host, const void *device, cudaStream_t stream, shuf__error *error)
{
    cudaError_t e = cudaMemcpyAsync(host, device, sizeof *host, cudaMemcpyDeviceToHost, stream);
    if (e == cudaSuccess)
        e = cudaStreamSynchronize(stream);
    return e == cudaSuccess ? SHUF_OK : fail_local(error, e, "waiting for sums of the weights");
}

shuf_status refuse_weight(const shuf__weight_array &weights, uint64_t number, cudaStream_t stream,
                          shuf__error *error)
{
    uint32_t words[2] = {0, 0};
    const auto *const at = static_cast<const char *>(weights.values) + number * width_of(weights);
    const shuf__weight_array copy = {words, weights.type, 1};
    const shuf_status status = weights.type == SHUF_F32 ? take(&words[0], at, stream, error)
                                                        : take(&words, at, stream, error);
    return status ? status : shuf__bad_weight(&copy, 0, number, error);
}

/* A call with weights: the checks of its memory, and the first pass over the weights. */
struct Call {
    OnDevice on;
    int device = 0;
    cudaStream_t stream;
    void *numbers;
    shuf__scratch_memory scratch;
    GoodWeights weights;
    WeightsFound found;

    Call(const shuf__weight_array *array, const shuf__scratch_memory *given, void *of)
        : stream(static_cast<cudaStream_t>(of)), numbers(given->memory),
          scratch(*given), weights{*array, 0}, found{}
    {
    }

    shuf_status check(const char *name, const void *out, size_t bytes, size_t needed,
                      shuf__error *error)
    {
        const size_t width = width_of(weights.array);
        if (find_memory(name, out, 16, &device, error) ||
            check_memory("weights", weights.array.values, width, device, error) ||
            check_workspace(&scratch, needed, device, error) ||
            check_apart(name, out, bytes, &scratch, needed, error) ||
            check_apart("weights", weights.array.values, weights.array.count * width, &scratch,
                        needed, error))
            return error->status;
        scratch.memory = static_cast<char *>(scratch.memory) + header;
        scratch.bytes -= header;
        return look(error);
    }

    shuf_status look(shuf__error *error)
    {
        int sm_count = 0;
        cudaError_t e = on.enter(device);
        if (e == cudaSuccess && refuse_capture(stream, "the host needs sums of the weights", error))
            return error->status;
        if (e == cudaSuccess)
            e = cudaDeviceGetAttribute(&sm_count, cudaDevAttrMultiProcessorCount, device);
        if (e == cudaSuccess)
            e = weights_look_async(weights.array, static_cast<WeightsFound *>(numbers), sm_count,
                                   stream);
        if (e != cudaSuccess)
            return fail_local(error, e, "launching a look at the weights");
        if (take(&found, numbers, stream, error))
            return error->status;
        weights.top = found.top;
        if (found.bad != UINT64_MAX)
            return refuse_weight(weights.array, found.bad, stream, error);
        return found.positive ? SHUF_OK : shuf__no_weight(error);
    }
};

shuf_status table(const shuf__weight_array *weights, uint64_t *column,
                  const shuf__scratch_memory *scratch, void *stream, shuf__error *error)
{
    Call call(weights, scratch, stream);
    WeightSum sum{};
    size_t needed = 0;
    if (table_bytes(weights->count, &needed, error) ||
        call.check("table", column, sizeof *column << shuf_weights_bits(weights->count), needed,
                   error))
        return error->status;
    cudaError_t e = weights_add_async(call.weights, static_cast<WeightSum *>(call.numbers),
                                      call.scratch, call.stream);
    if (e == cudaSuccess && take(&sum, call.numbers, call.stream, error))
        return error->status;
    if (e == cudaSuccess)
        e = weight_table_async(call.weights, sum, column, call.scratch, call.stream);
    return e == cudaSuccess ? SHUF_OK : fail_local(error, e, "launching a table of weights");
}

shuf_status draw(const uint64_t *column, unsigned bits, uint64_t seed, uint64_t epoch,
                 uint64_t first, uint64_t count, uint64_t stride, uint64_t *out, void *stream,
                 shuf__error *error)
{
    OnDevice on;
    int device = 0;
    if (find_memory("out", out, 16, &device, error) ||
        check_memory("table", column, 16, device, error))
        return error->status;
    cudaError_t e = on.enter(device);
    if (e == cudaSuccess)
        e = weights_draw_async(column, bits, seed, epoch, first, count, stride, out,
                               static_cast<cudaStream_t>(stream));
    return e == cudaSuccess ? SHUF_OK : fail_local(error, e, "launching weighted draws");
}

shuf_status sample(const shuf__weight_array *weights, uint64_t seed, uint64_t epoch,
                   uint64_t sample, uint64_t *out, const shuf__scratch_memory *scratch,
                   void *stream, shuf__error *error)
{
    Call call(weights, scratch, stream);
    size_t needed = 0;
    if (sample_bytes(weights->count, &needed, error) ||
        call.check("out", out, sample * sizeof *out, needed, error))
        return error->status;
    if (sample > call.found.positive)
        return shuf__sample_too_large(sample, call.found.positive, error);
    const cudaError_t e =
        weight_sample_async(call.weights, seed, epoch, sample, out, call.scratch, call.stream);
    return e == cudaSuccess ? SHUF_OK : fail_local(error, e, "launching a weighted sample");
}

} // namespace

const shuf__cuda_weights local_weights = {table_bytes, sample_bytes, table, draw, sample};

} // namespace shuf
