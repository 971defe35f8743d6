/* SPDX-License-Identifier: MIT
 *
 * Permutations by the scan of scan.cuh, and fingerprints. The sink stores values straight from
 * registers. Collecting them in shared memory first would not be faster, because arithmetic limits
 * the speed of the scan.
 */
#include "permute.cuh"

#include "scan.cuh"
#include "shuf/fingerprint.h"

#include <cassert>
#include <cub/block/block_reduce.cuh>

namespace shuf
{

namespace
{

/* ---- The sinks ---- */

template <typename Out> struct StoreDense {
    static constexpr bool in_rows = true;
    Out *out;

    static constexpr unsigned parts()
    {
        return 1;
    }

    template <typename Word>
    __device__ __forceinline__ void emit_dense(const Launch &launch, uint64_t row, uint64_t start,
                                               const Word (&x)[tuning::items]) const
    {
        Out *row_out = out + row * launch.count + start;
#pragma unroll
        for (int i = 0; i < tuning::items; i++)
            if (start + i * tuning::threads < launch.count)
                row_out[i * tuning::threads] = static_cast<Out>(x[i]);
    }
};

template <bool Strided, typename Out> struct Store : StoreDense<Out> {
    using Dense = StoreDense<Out>;
    static constexpr bool in_parts = false;
    struct Prefetched {
    };

    template <typename Word>
    __device__ __forceinline__ void prefetch(const Word (&)[tuning::items], Word,
                                             Prefetched &) const
    {
    }

    template <typename Word>
    __device__ __forceinline__ void stage(const Word (&)[tuning::items], Word,
                                          uint32_t (&)[tuning::items]) const
    {
    }

    template <typename Word>
    __device__ __forceinline__ void emit(const Launch &launch, uint64_t row, uint64_t position,
                                         uint32_t kept, const Word (&x)[tuning::items],
                                         const uint32_t (&rank)[tuning::items],
                                         const Prefetched &) const
    {
        Out *row_out = this->out + row * launch.count;
        store<Strided>(launch, position, kept, x, rank, row_out);
        if (shuf__slice_wraps(&launch)) /* the last position of a padded shard is at the front */
            store<Strided>(launch, position + launch.n, kept, x, rank, row_out);
    }
};

template <bool Strided, typename Out, typename Bijection>
cudaError_t run(const Scratch &scratch, const shuf__computation &computation, Bijection f,
                void *out, cudaStream_t stream, bool *cancelled)
{
    const Store<Strided, Out> sink{{static_cast<Out *>(out)}};
    return scan::Run(scratch, computation, f, sink, stream).go(cancelled);
}

/* Values of 64 bits never become u32 results, because n would not fit u32. */
template <bool Strided, typename Bijection>
cudaError_t run(const Scratch &scratch, const shuf__computation &computation, Bijection f,
                void *out, cudaStream_t stream, bool *cancelled)
{
    if constexpr (sizeof(typename Bijection::Word) == 4)
        if (width_of(computation) == 4)
            return run<Strided, uint32_t>(scratch, computation, f, out, stream, cancelled);
    return run<Strided, uint64_t>(scratch, computation, f, out, stream, cancelled);
}

template <typename Value, int Count> struct alignas(Count * sizeof(Value)) Load {
    Value value[Count];
};

/* A thread loads `Count` neighbouring values at a time. */
template <int Count, typename Value>
__global__ void __launch_bounds__(tuning::reduce_threads)
    sum_fingerprint(const Value *data, uint64_t values, uint64_t index, unsigned long long *sum)
{
    using Reduce = cub::BlockReduce<unsigned long long, tuning::reduce_threads>;
    __shared__ typename Reduce::TempStorage storage;
    const auto *loads = reinterpret_cast<const Load<Value, Count> *>(data);
    const uint64_t step = static_cast<uint64_t>(gridDim.x) * blockDim.x;
    const uint64_t mine = static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    unsigned long long part = 0;
    for (uint64_t i = mine; i < values / Count; i += step) {
        const Load<Value, Count> load = loads[i];
#pragma unroll
        for (int c = 0; c < Count; c++)
            part += shuf_fingerprint_term(index + i * Count + c, load.value[c]);
    }
    if (mine < values % Count) {
        const uint64_t i = values - 1 - mine;
        part += shuf_fingerprint_term(index + i, data[i]);
    }
    part = Reduce(storage).Sum(part);
    if (threadIdx.x == 0)
        atomicAdd(sum, part);
}

/* Values that begin at a multiple of 16 bytes are loaded faster. */
template <typename Value>
cudaError_t sum_async(const void *data, uint64_t values, uint64_t index, int sm_count,
                      unsigned long long *sum, cudaStream_t stream)
{
    constexpr int count = 16 / sizeof(Value);
    const uint64_t needed = (values + tuning::reduce_threads - 1) / tuning::reduce_threads;
    const uint64_t most = static_cast<uint64_t>(sm_count) * tuning::reduce_blocks_per_sm;
    const auto blocks = static_cast<unsigned>(needed < most ? needed : most);
    const auto kernel = reinterpret_cast<uintptr_t>(data) % 16 == 0 ? sum_fingerprint<count, Value>
                                                                    : sum_fingerprint<1, Value>;
    kernel<<<blocks, tuning::reduce_threads, 0, stream>>>(static_cast<const Value *>(data), values,
                                                          index, sum);
    return cudaGetLastError();
}

} // namespace

/* Computes one row after the other, for rows that take a whole launch or more. A scan over all rows
 * could not end early in each row, and the number of its tiles might not fit 64 bits. */
static cudaError_t row_by_row(const Scratch &scratch, const shuf__computation &computation,
                              void *out, cudaStream_t stream, bool *cancelled)
{
    const shuf__permutation &p = computation.request.permutation;
    shuf__computation one = computation;
    cudaError_t e = cudaSuccess;
    one.request.permutation.rows = 1;
    for (uint64_t row = 0; row < p.rows && e == cudaSuccess && !*cancelled; row++) {
        one.request.permutation.epoch = p.epoch + row;
        e = permute_async(scratch, one,
                          static_cast<char *>(out) + row * p.count * width_of(computation), stream,
                          cancelled);
        if (e == cudaSuccess)
            e = scan::sleep_until_done(scratch, stream);
        *cancelled = *cancelled ||
                     (computation.cancelled && computation.cancelled(computation.cancel_context));
    }
    return e;
}

cudaError_t permute_async(const Scratch &scratch, const shuf__computation &computation, void *out,
                          cudaStream_t stream, bool *cancelled)
{
    const shuf__permutation &p = computation.request.permutation;
    const uint64_t domain = uint64_t{1} << shuf_domain_bits(p.n);
    assert(!computation.rank_index ||
           (p.rows == 1 && shuf__rank_index_bytes(p.algorithm, p.n) > 0));
    *cancelled = false;
    if (p.count == 0)
        return cudaSuccess;
    /* The launch is short, so a single check for cancellation before it is enough. */
    if (shuf_algorithm_has_random_access(p.algorithm)) {
        *cancelled = computation.cancelled && computation.cancelled(computation.cancel_context);
        return *cancelled ? cudaSuccess
                          : primefold_async(p, width_of(computation), out, nullptr, stream);
    }
    if (p.rows > 1 && p.n != domain && domain / tuning::tile >= tuning::launch_tiles)
        return row_by_row(scratch, computation, out, stream, cancelled);
    return scan::with_bijection(p, [&](auto f) {
        return p.stride > 1 ? run<true>(scratch, computation, f, out, stream, cancelled)
                            : run<false>(scratch, computation, f, out, stream, cancelled);
    });
}

cudaError_t fingerprint_async(const void *data, unsigned width, uint64_t values, uint64_t index,
                              int sm_count, unsigned long long *sum, cudaStream_t stream)
{
    const cudaError_t e = cudaMemsetAsync(sum, 0, sizeof *sum, stream);
    if (e != cudaSuccess || values == 0)
        return e;
    return width == 2   ? sum_async<uint16_t>(data, values, index, sm_count, sum, stream)
           : width == 4 ? sum_async<uint32_t>(data, values, index, sm_count, sum, stream)
                        : sum_async<uint64_t>(data, values, index, sm_count, sum, stream);
}

/* The keys come first, because the size of the tiles' states depends on the permutation. */
constexpr size_t local_keys = 1024;

size_t local_scratch_bytes(const shuf__permutation &p)
{
    const uint64_t domain = uint64_t{1} << shuf_domain_bits(p.n);
    const uint64_t tiles = (domain + tuning::tile - 1) / tuning::tile;
    size_t state_bytes = 0;
    if (p.rows > local_keys || tiles > tuning::launch_tiles / p.rows)
        return 0;
    scan::TileState::AllocationSize(static_cast<int>(tiles * p.rows), state_bytes);
    return local_keys * key_words * sizeof(uint32_t) + state_bytes;
}

Scratch local_scratch(void *memory)
{
    Scratch scratch{};
    scratch.keys = static_cast<uint32_t *>(memory);
    scratch.tile_state = scratch.keys + local_keys * key_words;
    return scratch;
}

cudaError_t scratch_make(Scratch *scratch)
{
    const size_t starts_bytes = (scan::launch_index_tiles + 1) * sizeof *scratch->starts;
    size_t state_bytes = 0;
    *scratch = Scratch{};
    scan::TileState::AllocationSize(static_cast<int>(tuning::launch_tiles), state_bytes);
    cudaError_t e = cudaMalloc(&scratch->tile_state, state_bytes);
    if (e == cudaSuccess)
        e = cudaMalloc(&scratch->keys, tuning::launch_rows * key_words * sizeof *scratch->keys);
    if (e == cudaSuccess)
        e = cudaMalloc(&scratch->starts, starts_bytes);
    if (e == cudaSuccess)
        e = cudaMallocHost(&scratch->starts_here, starts_bytes);
    if (e == cudaSuccess)
        e = cudaEventCreateWithFlags(&scratch->launch_done,
                                     cudaEventBlockingSync | cudaEventDisableTiming);
    if (e != cudaSuccess)
        scratch_free(scratch);
    return e;
}

void scratch_free(Scratch *scratch)
{
    cudaFree(scratch->tile_state);
    cudaFree(scratch->keys);
    cudaFree(scratch->starts);
    cudaFreeHost(scratch->starts_here);
    if (scratch->launch_done)
        cudaEventDestroy(scratch->launch_done);
    *scratch = Scratch{};
}

} // namespace shuf
