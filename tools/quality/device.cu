/* SPDX-License-Identifier: MIT
 *
 * See device.h. Opens the backend, makes values on it, and counts the parallelograms of rows.
 * device_stream.cu and device_subsets.cu have the other counts.
 */
#include "device.cuh"

#include <cstring>
#include <vector>

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

/* ---- Parallelograms ---- */

/* Atomic additions count the differences of a row at one distance. Each residue has a counter of
 * one byte, and four counters are a word. The code then reads the counters of opposite residues
 * together. A counter overflows at 256 equal differences, but so many would be a finding anyway. */

namespace quality
{

namespace
{

constexpr unsigned threads = 256, blocks = 2048;
constexpr uint64_t tally_bytes = uint64_t{1} << 30; /* the least size of all tallies together */

/* One of many parallel counts: of a row, at one distance. */
struct Count {
    const uint32_t *row;
    uint32_t *tally;
    unsigned long long *found; /* twice the equal differences, and the opposite differences */
    uint32_t n, d, modulus;
};

__global__ void tally_kernel(const Count *counts)
{
    const Count c = counts[blockIdx.y];
    const uint32_t step = gridDim.x * blockDim.x;
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < c.n - c.d; i += step) {
        const uint32_t from = c.row[i], to = c.row[i + c.d];
        const uint32_t x = to - from + (to < from ? c.modulus : 0);
        atomicAdd(&c.tally[x / 4], 1U << x % 4 * 8);
    }
}

__device__ unsigned long long sum_over_warp(unsigned long long x)
{
    for (int step = 16; step > 0; step /= 2)
        x += __shfl_down_sync(~0U, x, step);
    return x;
}

__global__ void sum_kernel(const Count *counts)
{
    const Count c = counts[blockIdx.y];
    const auto *tally = reinterpret_cast<const uint8_t *>(c.tally);
    const uint32_t step = gridDim.x * blockDim.x, half = (c.modulus - 1) / 2;
    unsigned long long equal = 0, opposite = 0;
    for (uint32_t x = 1 + blockIdx.x * blockDim.x + threadIdx.x; x <= half; x += step) {
        const uint32_t up = tally[x], down = tally[c.modulus - x];
        equal += up * (up - 1) + down * (down - 1);
        opposite += up * down;
    }
    if (blockIdx.x == 0 && threadIdx.x == 0 && c.modulus % 2 == 0) {
        const uint32_t same = tally[c.modulus / 2];
        equal += same * (same - 1);
    }
    equal = sum_over_warp(equal);
    opposite = sum_over_warp(opposite);
    if (threadIdx.x % 32 == 0) {
        atomicAdd(&c.found[0], equal);
        atomicAdd(&c.found[1], opposite);
    }
}

/* The number of words of one tally: the counters of one row and distance. */
uint64_t tally_words(uint64_t modulus)
{
    return (modulus + 3) / 4;
}

/* The number of parallel counts. */
uint64_t counts_at_once(uint64_t modulus, uint64_t all)
{
    const uint64_t grid = 32768, room = tally_bytes / (4 * tally_words(modulus));
    const uint64_t fit = room < grid ? room : grid;
    return fit < 1 ? 1 : fit < all ? fit : all;
}

class Counting
{
  public:
    shuf_status allocate(const shuf__device_rows &rows, shuf__error *error)
    {
        all_ = rows.rows * rows.distances;
        at_once_ = counts_at_once(rows.modulus, all_);
        words_ = tally_words(rows.modulus);
        shuf_status status = to_status(tally_.allocate(at_once_ * words_), "tallies", error);
        if (status == SHUF_OK)
            status = to_status(counts_.allocate(at_once_), "counts", error);
        if (status == SHUF_OK)
            status = to_status(found_.allocate(2 * all_), "counts", error);
        return status;
    }

    shuf_status run(const shuf__device_rows &rows, const uint32_t *values, shuf__error *error)
    {
        for (uint64_t first = 0; first < all_; first += at_once_) {
            const uint64_t count = all_ - first < at_once_ ? all_ - first : at_once_;
            const shuf_status status =
                to_status(run(rows, values, first, count), "counting", error);
            if (status != SHUF_OK)
                return status;
        }
        return SHUF_OK;
    }

    shuf_status read(shuf__parallelograms *counted, shuf__error *error) const
    {
        std::vector<unsigned long long> found(2 * all_);
        const shuf_status status = to_status(found_.get(found.data()), "counts", error);
        for (uint64_t i = 0; i < all_ && status == SHUF_OK; i++) {
            counted[i].equal = found[2 * i] / 2;
            counted[i].either = found[2 * i] / 2 + found[2 * i + 1];
        }
        return status;
    }

  private:
    cudaError_t run(const shuf__device_rows &rows, const uint32_t *values, uint64_t first,
                    uint64_t count)
    {
        std::vector<Count> counts(at_once_);
        for (uint64_t i = 0; i < count; i++)
            counts[i] = {values + (first + i) / rows.distances * rows.n,
                         tally_.at() + i * words_,
                         found_.at() + 2 * (first + i),
                         rows.n,
                         rows.distance[first + i],
                         static_cast<uint32_t>(rows.modulus)};
        const unsigned wide = (rows.n + threads - 1) / threads;
        const dim3 grid(wide < blocks ? wide : blocks, static_cast<unsigned>(count));
        cudaError_t e = counts_.put(counts.data());
        if (e == cudaSuccess)
            e = tally_.clear();
        if (e != cudaSuccess)
            return e;
        tally_kernel<<<grid, threads>>>(counts_.at());
        sum_kernel<<<grid, threads>>>(counts_.at());
        e = cudaGetLastError();
        return e == cudaSuccess ? cudaDeviceSynchronize() : e;
    }

    uint64_t all_ = 0, at_once_ = 0, words_ = 0;
    Memory<uint32_t> tally_;
    Memory<Count> counts_;
    Memory<unsigned long long> found_;
};

shuf_status algorithm_of(const char *name, shuf_algorithm *algorithm, shuf__error *error)
{
#define X(id, text, ...)                  \
    if (strcmp(name, text) == 0) {        \
        *algorithm = SHUF_ALGORITHM_##id; \
        return SHUF_OK;                   \
    }
    SHUF_ALGORITHM_MAP(X)
#undef X
    return shuf__fail(error, SHUF_INVALID,
                      "--generator %.64s: a backend has no such algorithm, expected primefold",
                      name);
}

/* Makes the rows of one call. Rows that vary the seed are made one after the other. */
shuf_status make_rows(shuf__device *device, const shuf__device_rows &rows, shuf__computation *job,
                      uint64_t row, shuf__error *error)
{
    shuf__permutation &p = job->request.permutation;
    p.seed = rows.seed + (rows.vary_seed ? row : 0);
    p.epoch = rows.epoch + (rows.vary_seed ? 0 : row);
    p.rows = rows.vary_seed ? 1 : rows.rows;
    return make(device, *job, shuf__request_shape(&job->request).bytes, error);
}

} // namespace

} // namespace quality

extern "C" uint64_t shuf__device_rows_at_once(uint32_t n)
{
    const uint64_t most = (uint64_t{1} << 28) / n;
    return most < 1 ? 1 : most < 4096 ? most : 4096;
}

extern "C" shuf_status shuf__device_count_rows(shuf__device *device, const shuf__device_rows *rows,
                                               shuf__parallelograms *counted, shuf__error *error)
{
    shuf__device_rows part = *rows;
    shuf__computation job{};
    shuf__permutation &p = job.request.permutation;
    job.request.kind = SHUF__PERMUTATION;
    job.request.dtype = SHUF_U32;
    p.n = p.count = rows->n;
    p.stride = 1;
    shuf_status status = quality::algorithm_of(rows->algorithm, &p.algorithm, error);
    if (rows->vary_seed)
        part.rows = 1;
    for (uint64_t row = 0; row < rows->rows && status == SHUF_OK; row += part.rows) {
        quality::Counting counting;
        part.distance = rows->distance + row * rows->distances;
        status = quality::make_rows(device, *rows, &job, row, error);
        if (status == SHUF_OK)
            status = counting.allocate(part, error);
        if (status == SHUF_OK)
            status =
                counting.run(part, static_cast<const uint32_t *>(device->values.memory), error);
        if (status == SHUF_OK)
            status = counting.read(counted + row * rows->distances, error);
    }
    return status;
}
