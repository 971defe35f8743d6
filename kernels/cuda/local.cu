/* SPDX-License-Identifier: MIT
 *
 * The table of cuda_library.h: computations in the caller's CUDA stream and memory. The kernels are
 * those of the backend. A request that needs the host between two launches is refused.
 */
#include "cuda.cuh"
#include "cuda_library.h"
#include "host/weights.h"
#include "orders.cuh"
#include "rank_index.h"
#include "shuffle.cuh"
#include "tuning.cuh"
#include "weights.cuh"

#include <cinttypes>

namespace shuf
{

namespace
{

/* ---- The memory of the caller, and errors ---- */

/* The device of the memory is the current device of this thread while the object exists. */
class OnDevice
{
  public:
    OnDevice() = default;
    OnDevice(const OnDevice &) = delete;
    OnDevice &operator=(const OnDevice &) = delete;

    ~OnDevice()
    {
        if (before >= 0)
            cudaSetDevice(before);
    }

    cudaError_t enter(int device)
    {
        int now = 0;
        cudaError_t e = cudaGetDevice(&now);
        if (e != cudaSuccess || now == device)
            return e;
        before = now;
        return cudaSetDevice(device);
    }

  private:
    int before = -1;
};

/* Clears the error of an earlier call of this thread, which belongs to the caller's own work. */
shuf_status fail_local(shuf__error *error, cudaError_t e, const char *step)
{
    switch (e) {
    case cudaErrorInitializationError:
        cudaGetLastError();
        return shuf__fail(error, SHUF_DEVICE,
                          "cuda: %s: CUDA does not start; it never does in a child of fork() whose "
                          "parent has used it: start the child by spawn or exec",
                          step);
    default:
        return fail(error, e, step);
    }
}

/* Checks that a kernel can use the memory, and finds its device. */
shuf_status find_memory(const char *name, const void *memory, size_t alignment, int *device,
                        shuf__error *error)
{
    cudaPointerAttributes attributes{};
    const cudaError_t e = cudaPointerGetAttributes(&attributes, memory);
    if (e != cudaSuccess)
        return fail_local(error, e, "finding the device of the memory");
    if (attributes.type != cudaMemoryTypeDevice && attributes.type != cudaMemoryTypeManaged)
        return shuf__fail(error, SHUF_INVALID, "%s %p: memory of the host; expected device memory",
                          name, memory);
    if (reinterpret_cast<uintptr_t>(memory) % alignment != 0)
        return shuf__fail(error, SHUF_INVALID, "%s %p: expected a multiple of %zu", name, memory,
                          alignment);
    *device = attributes.device;
    return SHUF_OK;
}

/* Does the same for further memory, which must be on the same device. */
shuf_status check_memory(const char *name, const void *memory, size_t alignment, int device,
                         shuf__error *error)
{
    int of = 0;
    if (find_memory(name, memory, alignment, &of, error))
        return error->status;
    return of == device ? SHUF_OK
                        : shuf__fail(error, SHUF_INVALID,
                                     "%s %p: memory of device %d; expected device %d, as for the "
                                     "result",
                                     name, memory, of, device);
}

/* Fails if kernels would overwrite the workspace, or read it as records. */
shuf_status check_apart(const char *name, const void *memory, size_t bytes,
                        const shuf__scratch_memory *scratch, size_t needed, shuf__error *error)
{
    const auto a = reinterpret_cast<uintptr_t>(memory);
    const auto b = reinterpret_cast<uintptr_t>(scratch->memory);
    if (a + bytes <= b || b + needed <= a)
        return SHUF_OK;
    return shuf__fail(error, SHUF_INVALID, "workspace and %s overlap: expected memory of its own",
                      name);
}

/* Fails unless the workspace is large enough, and on this device. */
shuf_status check_workspace(const shuf__scratch_memory *scratch, size_t needed, int device,
                            shuf__error *error)
{
    if (scratch->bytes < needed)
        return shuf__fail(error, SHUF_INVALID, "workspace of %zu bytes: expected %zu",
                          scratch->bytes, needed);
    return needed ? check_memory("workspace", scratch->memory, 256, device, error) : SHUF_OK;
}

/* Fails while a CUDA graph captures the stream. `reason`: what else is needed. */
shuf_status refuse_capture(cudaStream_t stream, const char *reason, shuf__error *error)
{
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    const cudaError_t e = cudaStreamIsCapturing(stream, &capture);
    if (e != cudaSuccess)
        return fail_local(error, e, "looking at the stream");
    return capture == cudaStreamCaptureStatusNone
               ? SHUF_OK
               : shuf__fail(error, SHUF_INVALID, "stream: it is captured, but %s", reason);
}

/* ---- Requests ---- */

bool scans(const shuf__request *request)
{
    const shuf__permutation *p = shuf__request_permutation(request);
    return p && !shuf_algorithm_has_random_access(p->algorithm);
}

shuf_status scan_bytes(const shuf__permutation &p, size_t *bytes, shuf__error *error)
{
    *bytes = local_scratch_bytes(p);
    if (*bytes)
        return SHUF_OK;
    return shuf__fail(error, SHUF_INVALID,
                      "n %" PRIu64 ", epochs %" PRIu64 ": %s needs several launches and the host "
                      "between them; expected less in one call, primefold, or a daemon",
                      p.n, p.rows, p.algorithm == SHUF_ALGORITHM_LCG ? "lcg" : "philox24");
}

shuf_status scratch_bytes(const shuf__request *request, size_t *bytes, shuf__error *error)
{
    *bytes = 0;
    switch (request->kind) {
    case SHUF__PERMUTATION:
        if (request->permutation.window)
            *bytes = windowed_bytes(request->permutation, shuf__dtype_bytes(request->dtype));
        return scans(request) ? scan_bytes(request->permutation, bytes, error) : SHUF_OK;
    case SHUF__SHUFFLE:
        if (scans(request))
            return scan_bytes(request->shuffle.permutation, bytes, error);
        *bytes = request->shuffle.permutation.n <= SHUF_PRIMEFOLD_EXACT
                     ? shuffle_list_bytes
                     : shuffle_best_bytes(request->shuffle);
        return SHUF_OK;
    case SHUF__STREAM:
        return SHUF_OK;
    default:
        return shuf__fail(error, SHUF_INVALID,
                          "kind: a GPU computes permutations, numbers and shuffles in process; "
                          "expected one of them, or a daemon");
    }
}

cudaError_t draw(const shuf__request &request, int device, void *out, cudaStream_t stream)
{
    int sm_count = 0;
    const cudaError_t e = cudaDeviceGetAttribute(&sm_count, cudaDevAttrMultiProcessorCount, device);
    return e == cudaSuccess ? stream_async(request.stream, request.dtype, sm_count,
                                           {out, nullptr, nullptr}, stream)
                            : e;
}

/* The loops of the host, for the few values that it computes. There are always some without an
 * instruction set. */
const shuf__simd_ops *simd()
{
    const shuf__simd_ops *best = nullptr;
    shuf__error ignored;
    shuf__simd_choose(nullptr, &best, &ignored);
    return best;
}

cudaError_t move(const shuf__computation &computation, const void *in, void *out, void *scratch,
                 cudaStream_t stream)
{
    const shuf__shuffle &s = computation.request.shuffle;
    bool cancelled = false;
    if (is_large(s))
        return large_async(simd(), computation, in, out, stream, &cancelled);
    return shuffle_async(local_scratch(scratch), computation, in, out,
                         shuffle_best_bytes(s) ? scratch : nullptr, scratch, stream, &cancelled);
}

cudaError_t queue(const shuf__request &request, int device, const void *in, void *out,
                  void *scratch, cudaStream_t stream)
{
    shuf__computation computation{};
    bool cancelled = false;
    computation.request = request;
    if (request.kind == SHUF__STREAM)
        return draw(request, device, out, stream);
    if (request.kind == SHUF__SHUFFLE)
        return move(computation, in, out, scratch, stream);
    if (request.permutation.window)
        return windowed_async(simd(), 1, computation, out, scratch, stream, &cancelled);
    return permute_async(local_scratch(scratch), computation, out, stream, &cancelled);
}

shuf_status check_scratch(const shuf__request *request, const void *in, const void *out,
                          const shuf__scratch_memory *scratch, int device, shuf__error *error)
{
    size_t needed = 0;
    const size_t bytes = shuf__request_shape(request).bytes;
    if (scratch_bytes(request, &needed, error))
        return error->status;
    if (check_workspace(scratch, needed, device, error) ||
        check_apart("out", out, bytes, scratch, needed, error) ||
        (in && check_apart("in", in, bytes, scratch, needed, error)))
        return error->status;
    return SHUF_OK;
}

/* Fails while the stream is captured, if the host computes the values: a replay would copy them
 * from memory that is free by then. */
shuf_status check_capture(const shuf__request *request, cudaStream_t stream, shuf__error *error)
{
    if (request->kind != SHUF__PERMUTATION || !request->permutation.window ||
        !windowed_is_sparse(request->permutation))
        return SHUF_OK;
    return refuse_capture(
        stream,
        "the host computes these few values of a windowed order; expected more of "
        "them, or a call before the capture",
        error);
}

shuf_status compute(const shuf__request *request, const void *in, void *out,
                    const shuf__scratch_memory *scratch, void *stream, shuf__error *error)
{
    OnDevice on;
    int device = 0;
    if (find_memory("out", out, 16, &device, error) ||
        check_scratch(request, in, out, scratch, device, error) ||
        (in && check_memory("in", in, 16, device, error)))
        return error->status;
    cudaError_t e = on.enter(device);
    if (e == cudaSuccess && check_capture(request, static_cast<cudaStream_t>(stream), error))
        return error->status;
    if (e == cudaSuccess)
        e = queue(*request, device, in, out, scratch->memory, static_cast<cudaStream_t>(stream));
    return e == cudaSuccess ? SHUF_OK : fail_local(error, e, "launching the kernels");
}

shuf_status look_up(const shuf__request *request, unsigned width, const void *at, void *out,
                    size_t count, void *stream, shuf__error *error)
{
    OnDevice on;
    int device = 0;
    if (request->look_up.permutation.window)
        return shuf__fail(
            error, SHUF_INVALID,
            "window: a GPU looks up only uniform permutations; expected 0, or look-ups "
            "by the host");
    if (scans(request))
        return shuf__fail(error, SHUF_INVALID,
                          "algorithm: a GPU looks up only primefold; expected it, or a daemon");
    if (find_memory("out", out, 16, &device, error) || check_memory("at", at, 16, device, error))
        return error->status;
    cudaError_t e = on.enter(device);
    if (e == cudaSuccess)
        e = primefold_look_up_async(request->look_up, width, at, out, count,
                                    static_cast<cudaStream_t>(stream));
    return e == cudaSuccess ? SHUF_OK : fail_local(error, e, "launching a look-up");
}

shuf_status fingerprint(const void *values, unsigned width, uint64_t count, uint64_t *sum,
                        void *stream, shuf__error *error)
{
    OnDevice on;
    int device = 0, sm_count = 0;
    if (find_memory("fingerprint", sum, sizeof *sum, &device, error) ||
        (count && check_memory("values", values, width, device, error)))
        return error->status;
    cudaError_t e = on.enter(device);
    if (e == cudaSuccess)
        e = cudaDeviceGetAttribute(&sm_count, cudaDevAttrMultiProcessorCount, device);
    if (e == cudaSuccess)
        e = fingerprint_async(values, width, count, 0, sm_count,
                              reinterpret_cast<unsigned long long *>(sum),
                              static_cast<cudaStream_t>(stream));
    return e == cudaSuccess ? SHUF_OK : fail_local(error, e, "launching the fingerprint");
}

shuf_status check_mixture(const shuf__mixture *mixture, uint64_t first, uint64_t count,
                          cudaStream_t stream, shuf__error *error)
{
    for (uint32_t i = 0; i < mixture->source_count; i++)
        if (mixture->sources[i].windowed)
            return shuf__fail(error, SHUF_INVALID,
                              "window of source %" PRIu32 ": a GPU computes mixtures of uniform "
                              "sources; expected 0, or shuf_mixture_fill()",
                              i);
    if (first + count > mixture_most)
        return shuf__fail(error, SHUF_INVALID,
                          "first %" PRIu64
                          ": a GPU computes mixtures up to position 2^50; expected "
                          "less, or shuf_mixture_fill()",
                          first);
    return refuse_capture(stream, "the host computes parts of a mixture", error);
}

shuf_status mixture(const shuf__mixture *m, uint64_t first, uint64_t count, uint64_t *index,
                    const shuf__scratch_memory *scratch, void *stream, shuf__error *error)
{
    OnDevice on;
    int device = 0;
    const size_t needed = mixture_bytes(m, count);
    if (find_memory("index", index, 16, &device, error) ||
        check_workspace(scratch, needed, device, error) ||
        check_apart("index", index, count * sizeof *index, scratch, needed, error))
        return error->status;
    cudaError_t e = on.enter(device);
    if (e == cudaSuccess &&
        check_mixture(m, first, count, static_cast<cudaStream_t>(stream), error))
        return error->status;
    if (e == cudaSuccess)
        e = mixture_async(*m, first, count, index, scratch->memory,
                          static_cast<cudaStream_t>(stream));
    return e == cudaSuccess ? SHUF_OK : fail_local(error, e, "launching a mixture");
}

/* ---- Weights ---- */

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

const shuf__cuda_weights weights = {table_bytes, sample_bytes, table, draw, sample};

} // namespace

} // namespace shuf

static_assert(CUDART_VERSION / 1000 >= SHUF__CUDA_OLDEST &&
                  CUDART_VERSION / 1000 <= SHUF__CUDA_NEWEST,
              "cuda_library.c looks for a library of this version");

extern "C" __attribute__((visibility("default"))) const struct shuf__cuda_library shuf__cuda = {
    SHUF_VERSION_TEXT, {SHUF__CUDA_STRUCTS(SHUF__CUDA_SIZE_OF)},
    &shuf__cuda_ops,   shuf::scratch_bytes,
    shuf::compute,     shuf::look_up,
    shuf::fingerprint, shuf::mixture_bytes,
    shuf::mixture,     &shuf::weights,
};
