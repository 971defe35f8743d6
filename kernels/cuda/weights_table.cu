/* SPDX-License-Identifier: MIT
 *
 * The table of weighted draws (docs/spec.md, "Weighted draws") on the GPU, and the checks before
 * it.
 *
 * CUB makes three sums of prefixes: that of the rounded weights, and over all columns that of the
 * gaps of the light ones and that of the excess of the heavy ones. Then each column is a look-up in
 * the last two. Both sums also stand at columns of the other kind, where they do not grow, so a
 * look-up finds columns, and nothing numbers the light and heavy ones.
 */
#include "cub_call.cuh"
#include "weights.cuh"

#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/iterator/transform_output_iterator.h>

#include <algorithm>
#include <climits>

namespace shuf
{

namespace
{

constexpr int threads = 256;

/* ---- The first pass ---- */

__device__ __forceinline__ bool is_weight(const shuf__weight_array &weights, uint64_t bits)
{
    return weights.type == SHUF_U64 ||
           (weights.type == SHUF_F64 ? shuf_weight_is_f64(bits)
                                     : shuf_weight_is_f32(static_cast<uint32_t>(bits)));
}

__global__ void __launch_bounds__(threads)
    look(__grid_constant__ const shuf__weight_array weights, WeightsFound *found)
{
    unsigned long long bad = ULLONG_MAX, positive = 0;
    int top = INT_MIN;
    for (uint64_t i = uint64_t{blockIdx.x} * threads + threadIdx.x; i < weights.count;
         i += uint64_t{gridDim.x} * threads) {
        const uint64_t bits = weight_bits(weights, i);
        if (!is_weight(weights, bits)) {
            bad = bad < i ? bad : i;
            continue;
        }
        const shuf_weight weight = weight_of(weights, bits);
        const int end = 64 - __clzll(static_cast<long long>(weight.number)) + weight.exponent;
        positive += weight.number != 0;
        top = weight.number && end > top ? end : top;
    }
    for (int step = 16; step; step /= 2) {
        const unsigned long long other = __shfl_xor_sync(~0u, bad, step);
        const int other_top = __shfl_xor_sync(~0u, top, step);
        bad = bad < other ? bad : other;
        top = top > other_top ? top : other_top;
        positive += __shfl_xor_sync(~0u, positive, step);
    }
    if (threadIdx.x % 32)
        return;
    atomicMin(&found->bad, bad);
    atomicAdd(&found->positive, positive);
    atomicMax(&found->top, top);
}

/* ---- Sums of prefixes ---- */

__host__ __device__ __forceinline__ shuf__u128 value_of(const WeightSum &sum)
{
    return static_cast<shuf__u128>(sum.high) << 64 | sum.low;
}

__host__ __device__ __forceinline__ WeightSum sum_of(shuf__u128 value)
{
    return {static_cast<uint64_t>(value), static_cast<uint64_t>(value >> 64)};
}

struct Add {
    __host__ __device__ __forceinline__ WeightSum operator()(const WeightSum &a,
                                                             const WeightSum &b) const
    {
        return sum_of(value_of(a) + value_of(b));
    }
};

struct AddNumbers {
    __host__ __device__ __forceinline__ uint64_t operator()(uint64_t a, uint64_t b) const
    {
        return a + b;
    }
};

/* The rounded weight m_j. */
struct Rounded {
    using Plus = Add;
    GoodWeights weights;

    __device__ __forceinline__ WeightSum operator()(uint64_t i) const
    {
        return sum_of(shuf_weight_fixed(weight_at(weights.array, i), weights.top));
    }
};

/* f(C) by a division of 127 bits with a prepared reciprocal (Möller, Granlund: "Improved division
 * by invariant integers", IEEE Transactions on Computers 60(2), 2011, algorithm 4). The divisor has
 * its upper bit, and the upper word of the dividend is below it. */
struct Part {
    uint64_t divisor, reciprocal;
    unsigned shift;

    explicit Part(shuf__u128 sum)
    {
        shift = 64 - static_cast<unsigned>(__builtin_clzll(static_cast<uint64_t>(sum >> 64)));
        divisor = static_cast<uint64_t>(sum >> shift);
        reciprocal = static_cast<uint64_t>(~shuf__u128{0} / divisor - (shuf__u128{1} << 64));
    }

    __host__ __device__ __forceinline__ uint64_t operator()(const WeightSum &sum) const
    {
        const auto of = static_cast<uint64_t>(value_of(sum) >> shift);
        const shuf__u128 dividend = static_cast<shuf__u128>(of) << SHUF_WEIGHTS_BITS;
        const auto low = static_cast<uint64_t>(dividend);
        const shuf__u128 product =
            static_cast<shuf__u128>(reciprocal) * static_cast<uint64_t>(dividend >> 64) + dividend;
        uint64_t quotient = static_cast<uint64_t>(product >> 64) + 1;
        uint64_t rest = low - quotient * divisor;
        if (rest > static_cast<uint64_t>(product)) {
            quotient--;
            rest += divisor;
        }
        return quotient + (rest >= divisor);
    }
};

/* The q_j of a column, from f(C_(j+1)) of all columns with a weight. */
struct Columns {
    using Plus = AddNumbers;
    const uint64_t *end;
    uint64_t count, full;

    __device__ __forceinline__ uint64_t weight(uint64_t j) const
    {
        if (j >= count)
            return 0;
        return end[j] - (j ? end[j - 1] : 0);
    }
};

struct Gap : Columns {
    __device__ __forceinline__ uint64_t operator()(uint64_t j) const
    {
        const uint64_t q = weight(j);
        return q < full ? full - q : 0;
    }
};

struct Excess : Columns {
    __device__ __forceinline__ uint64_t operator()(uint64_t j) const
    {
        const uint64_t q = weight(j);
        return q > full ? q - full : 0;
    }
};

template <typename Function> auto each_of(const Function &function)
{
    return thrust::make_transform_iterator(thrust::counting_iterator<uint64_t>(0), function);
}

cudaError_t add_up(const Rounded &rounded, WeightSum *sum, void *scratch, size_t &bytes,
                   cudaStream_t stream)
{
    return guarded([&] {
        return cub::DeviceReduce::Reduce(scratch, bytes, each_of(rounded), sum,
                                         static_cast<int>(rounded.weights.array.count), Add{},
                                         WeightSum{}, stream);
    });
}

template <typename Out, typename Function>
cudaError_t scan(const Function &function, uint64_t count, Out out, void *scratch, size_t &bytes,
                 cudaStream_t stream)
{
    return guarded([&] {
        return cub::DeviceScan::InclusiveScan(scratch, bytes, each_of(function), out,
                                              typename Function::Plus{}, static_cast<int>(count),
                                              stream);
    });
}

/* ---- The table ---- */

struct Table {
    uint64_t *column;
    const uint64_t *gaps, *excess; /* the sums up to and with each column */
    uint64_t columns, full;
    unsigned bits;

    __device__ __forceinline__ uint64_t gaps_before(uint64_t j) const
    {
        return j ? gaps[j - 1] : 0;
    }

    __device__ __forceinline__ uint64_t excess_before(uint64_t j) const
    {
        return j ? excess[j - 1] : 0;
    }
};

/* The first of the ascending numbers that is greater than `limit` or, without Greater, at least
 * `limit`. `count` if none is. */
template <bool Greater>
__device__ __forceinline__ uint64_t find(const uint64_t *number, uint64_t count, uint64_t limit)
{
    uint64_t low = 0, left = count;
    while (left) {
        const uint64_t half = left / 2, x = number[low + half];
        const bool found = Greater ? x > limit : x >= limit;
        low = found ? low : low + half + 1;
        left = found ? half : left - half - 1;
    }
    return low;
}

/* The heavy column that still has something to give fills a light one. */
__device__ __forceinline__ uint64_t light(const Table &t, uint64_t j)
{
    const uint64_t before = t.gaps_before(j), gap = t.gaps[j] - before;
    const uint64_t alias = gap ? find<true>(t.excess, t.columns, before) : j;
    return shuf_weights_column(t.full - gap, alias, t.bits);
}

/* The light columns leave a rest in a heavy column, and the next heavy one fills it. All gaps
 * together are all excess together, so some sum of gaps is as large as each sum of excess. */
__device__ __forceinline__ uint64_t heavy(const Table &t, uint64_t j)
{
    const uint64_t given = t.excess[j];
    const uint64_t taken = t.gaps[find<false>(t.gaps, t.columns, given)];
    const uint64_t next = find<true>(t.excess, t.columns, given);
    return shuf_weights_column(t.full + given - taken, next < t.columns ? next : j, t.bits);
}

__global__ void __launch_bounds__(threads) fill(__grid_constant__ const Table t)
{
    const uint64_t j = uint64_t{blockIdx.x} * threads + threadIdx.x;
    if (j < t.columns)
        t.column[j] = t.excess[j] > t.excess_before(j) ? heavy(t, j) : light(t, j);
}

} // namespace

cudaError_t weights_look_async(const shuf__weight_array &weights, WeightsFound *found, int sm_count,
                               cudaStream_t stream)
{
    const WeightsFound none{ULLONG_MAX, 0, INT_MIN};
    const cudaError_t e =
        cudaMemcpyAsync(found, &none, sizeof none, cudaMemcpyHostToDevice, stream);
    const uint64_t blocks = (weights.count - 1) / threads + 1;
    const auto most = static_cast<uint64_t>(8 * sm_count);
    if (e != cudaSuccess)
        return e;
    look<<<static_cast<unsigned>(std::min(blocks, most)), threads, 0, stream>>>(weights, found);
    return cudaGetLastError();
}

cudaError_t weights_add_async(const GoodWeights &weights, WeightSum *sum,
                              const shuf__scratch_memory &scratch, cudaStream_t stream)
{
    size_t bytes = scratch.bytes;
    return add_up({weights}, sum, scratch.memory, bytes, stream);
}

size_t weight_table_bytes(uint64_t count)
{
    const uint64_t columns = uint64_t{1} << shuf_weights_bits(count);
    const Rounded rounded{{{nullptr, SHUF_F64, count}, 0}};
    const Part part(shuf__u128{1} << SHUF__WEIGHT_BITS);
    uint64_t *const none = nullptr;
    size_t of_sum = 0, of_ends = 0, of_columns = 0;
    cudaError_t e = add_up(rounded, nullptr, nullptr, of_sum, nullptr);
    if (e == cudaSuccess)
        e = scan(rounded, count, thrust::make_transform_output_iterator(none, part), nullptr,
                 of_ends, nullptr);
    if (e == cudaSuccess)
        e = scan(Gap{{none, count, 0}}, columns, none, nullptr, of_columns, nullptr);
    const size_t most = std::max({of_sum, of_ends, of_columns});
    return e == cudaSuccess ? 2 * columns * sizeof(uint64_t) + most : 0;
}

cudaError_t weight_table_async(const GoodWeights &weights, const WeightSum &sum, uint64_t *column,
                               const shuf__scratch_memory &scratch, cudaStream_t stream)
{
    const unsigned bits = shuf_weights_bits(weights.array.count);
    const uint64_t columns = uint64_t{1} << bits, full = shuf_weights_full(bits);
    auto *const gaps = static_cast<uint64_t *>(scratch.memory), *const excess = gaps + columns;
    void *const rest = excess + columns;
    size_t bytes = scratch.bytes - 2 * columns * sizeof(uint64_t);
    const auto ends = thrust::make_transform_output_iterator(column, Part(value_of(sum)));
    const Columns of{column, weights.array.count, full};
    cudaError_t e = scan(Rounded{weights}, weights.array.count, ends, rest, bytes, stream);
    if (e == cudaSuccess)
        e = scan(Gap{of}, columns, gaps, rest, bytes, stream);
    if (e == cudaSuccess)
        e = scan(Excess{of}, columns, excess, rest, bytes, stream);
    if (e != cudaSuccess)
        return e;
    fill<<<static_cast<unsigned>((columns - 1) / threads + 1), threads, 0, stream>>>(
        Table{column, gaps, excess, columns, full, bits});
    return cudaGetLastError();
}

} // namespace shuf
