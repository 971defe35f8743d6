/* SPDX-License-Identifier: MIT
 *
 * The kernels of `primefold`. Nothing is compacted, so nothing is scanned: every
 * thread knows where its values stand, four neighbours for each store.
 *
 * Along the positions of a row the first map is a sum. The p - n values that are
 * not below n are walked on by the thread that met them, which is rare but for the
 * smallest n.
 */
#include "permute.cuh"

#include "primefold.cuh"
#include "quick.cuh"
#include "tuning.cuh"

namespace shuf
{

namespace
{

using tuning::fold_threads;
constexpr int group = 4; /* neighbours that a thread stores at once */
template <typename Form>
constexpr uint64_t fold_tile = uint64_t{fold_threads} * group *Form::groups;

/* What is the same for every row of a job. */
struct Rows {
    uint64_t count, offset, stride;
    uint64_t stride_mod; /* mod p */
    uint64_t wrapped;    /* where a row's last value stands, if that is at the front */
    bool wraps, aligned; /* a row's values begin at a multiple of 16 bytes */
};

Rows make_rows(const shuf__job &job, const shuf_primefold_shape &shape)
{
    Rows rows{job.count, job.offset, job.stride, shape.p ? job.stride % shape.p : 0,
              0,         false,      false};
    const uint64_t last = job.offset + (job.count - 1) * job.stride;
    rows.wraps = last >= job.n;
    rows.wrapped = rows.wraps ? last - job.n : 0;
    rows.aligned = job.rows == 1 || job.count % group == 0;
    return rows;
}

__device__ __forceinline__ void store_group(uint32_t *out, const uint32_t (&x)[group])
{
    *reinterpret_cast<uint4 *>(out) = make_uint4(x[0], x[1], x[2], x[3]);
}

__device__ __forceinline__ void store_group(uint64_t *out, const uint64_t (&x)[group])
{
    reinterpret_cast<ulonglong2 *>(out)[0] = make_ulonglong2(x[0], x[1]);
    reinterpret_cast<ulonglong2 *>(out)[1] = make_ulonglong2(x[2], x[3]);
}

template <typename Form>
__device__ __forceinline__ typename Form::Word
evaluated(const Form &f, const typename Form::Row &keys, uint64_t position)
{
    typename Form::Word x[1] = {f.first(keys, position)};
    f.rest(keys, x);
    return x[0];
}

/* A group of values of which number i is the first; x[c]: after all maps. */
template <typename Form, typename Out>
__device__ __forceinline__ void finish(const Form &f, const typename Form::Row &keys,
                                       const Rows &rows, uint64_t i,
                                       typename Form::Word (&x)[group], Out *row_out)
{
    using Word = typename Form::Word;
    Word most = max(max(x[0], x[1]), max(x[2], x[3]));
    if (rows.wraps && i + group >= rows.count) {
#pragma unroll
        for (int c = 0; c < group; c++)
            if (i + c == rows.count - 1)
                x[c] = evaluated(f, keys, rows.wrapped);
        most = f.n;
    }
    if (most >= f.n) {
#pragma unroll
        for (int c = 0; c < group; c++) /* beyond the last may stand what never comes below n */
            while (x[c] >= f.n && i + c < rows.count)
                x[c] = evaluated(f, keys, x[c]);
    }
    Out value[group];
#pragma unroll
    for (int c = 0; c < group; c++)
        value[c] = static_cast<Out>(x[c]);
    if (rows.aligned && i + group <= rows.count) {
        store_group(row_out + i, value);
        return;
    }
#pragma unroll
    for (int c = 0; c < group; c++)
        if (i + c < rows.count)
            row_out[i + c] = value[c];
}

/* The first map of a group's values, from that of the first of them. */
template <typename Form>
__device__ __forceinline__ void spread(const Form &f, typename Form::Word y,
                                       typename Form::Word step, typename Form::Word (&x)[group])
{
    x[0] = y;
#pragma unroll
    for (int c = 1; c < group; c++)
        x[c] = f.add(x[c - 1], step);
}

/* What the first map adds over `distance` positions, which is below p. */
template <typename Form>
__device__ __forceinline__ typename Form::Word
step_of(const Form &f, const typename Form::Row &keys, uint64_t distance)
{
    const typename Form::Word far = f.first(keys, distance), near = f.first(keys, 0);
    return far >= near ? far - near : far - near + f.p;
}

template <typename Word> struct Steps {
    Word one, leap; /* over a stride, and over those of a block's groups */
};

template <typename Form, typename Out>
__device__ __forceinline__ void tile_of_row(const Form &f, const typename Form::Row &keys,
                                            const Steps<typename Form::Word> &steps,
                                            const Rows &rows, uint64_t i, Out *row_out)
{
    typename Form::Word x[Form::groups][group];
    typename Form::Word y = f.first(keys, rows.offset + i * rows.stride);
#pragma unroll
    for (int g = 0; g < Form::groups; g++) {
        spread(f, y, steps.one, x[g]);
        y = f.add(y, steps.leap);
    }
#pragma unroll
    for (int g = 0; g < Form::groups; g++)
        f.rest(keys, x[g]);
#pragma unroll
    for (int g = 0; g < Form::groups; g++)
        if (i + g * fold_threads * group < rows.count)
            finish(f, keys, rows, i + g * fold_threads * group, x[g], row_out);
}

/* A job of one row, whose keys are constants: one block a tile. */
template <typename Form, typename Out>
__global__ void __launch_bounds__(fold_threads, Form::blocks_per_sm)
    fold_row(__grid_constant__ const Form f,
             __grid_constant__ const Steps<typename Form::Word> steps,
             __grid_constant__ const Rows rows, Out *out)
{
    const uint64_t i = blockIdx.x * fold_tile<Form> + threadIdx.x * group;
    if (i < rows.count)
        tile_of_row(f, f.row, steps, rows, i, out);
}

/* As quick_async wants it: four values a thread of one block. */
template <typename Form, typename Out>
__global__ void __launch_bounds__(tuning::quick_threads)
    fold_quick(__grid_constant__ const Form f,
               __grid_constant__ const Steps<typename Form::Word> steps,
               __grid_constant__ const Rows rows, __grid_constant__ const Signal signal, Out *out)
{
    const uint64_t i = threadIdx.x * group;
    if (i < rows.count) {
        typename Form::Word x[group];
        spread(f, f.first(f.row, rows.offset + i * rows.stride), steps.one, x);
        f.rest(f.row, x);
        finish(f, f.row, rows, i, x, out);
    }
    tell(signal);
}

__device__ __forceinline__ void load_group(const uint32_t *at, uint32_t (&x)[group])
{
    const uint4 four = *reinterpret_cast<const uint4 *>(at);
    x[0] = four.x, x[1] = four.y, x[2] = four.z, x[3] = four.w;
}

__device__ __forceinline__ void load_group(const uint64_t *at, uint64_t (&x)[group])
{
    const ulonglong2 *pairs = reinterpret_cast<const ulonglong2 *>(at);
    const ulonglong2 low = pairs[0], high = pairs[1];
    x[0] = low.x, x[1] = low.y, x[2] = high.x, x[3] = high.y;
}

/* values[i] = the value at position at[i] < n; both begin at a multiple of 16 bytes. */
template <typename Form, typename Value>
__global__ void __launch_bounds__(fold_threads, Form::blocks_per_sm)
    fold_look_up(__grid_constant__ const Form f, __grid_constant__ const Rows rows, const Value *at,
                 Value *values)
{
    const uint64_t i = (uint64_t{blockIdx.x} * fold_threads + threadIdx.x) * group;
    Value position[group] = {};
    typename Form::Word x[group];
    if (i + group <= rows.count)
        load_group(at + i, position);
    else
        for (int c = 0; c < group; c++)
            position[c] = i + c < rows.count ? at[i + c] : 0;
#pragma unroll
    for (int c = 0; c < group; c++)
        x[c] = f.first(f.row, position[c]);
    f.rest(f.row, x);
    if (i < rows.count)
        finish(f, f.row, rows, i, x, values);
}

/* Whose keys a block makes for itself. */
struct Batch {
    shuf_primefold_shape shape;
    uint64_t seed, epoch, rows;
    uint64_t inverse; /* floor((2^64 - 1) / p) */
    uint32_t rows_a_block;
    uint32_t groups, groups_inverse; /* of a row; ceil(2^32 / groups), or 0 for 1 */
    uint32_t tiles;                  /* a row's blocks, where it has several */
};

/* The maps of `count` rows from `row` on. `words` and `keys` are shared memory. */
template <typename Form, int Maps>
__device__ __forceinline__ void make_keys(const Batch &batch, uint64_t row, uint32_t count,
                                          uint32_t *words, typename Form::Row *keys)
{
    const uint32_t blocks = Maps == 4 ? 3 : 2;
    for (uint32_t t = threadIdx.x; t < count * blocks; t += blockDim.x)
        shuf_key_words_for(batch.shape.n, batch.seed, batch.epoch + row + t / blocks,
                           SHUF_PURPOSE_PRIMEFOLD, t % blocks, words + 8 * t);
    __syncthreads();
    for (uint32_t t = threadIdx.x; t < count * Maps; t += blockDim.x)
        Form::set_there(
            keys[t / Maps], t % Maps,
            shuf_primefold_map_of(&batch.shape, words + 8 * blocks * (t / Maps), t % Maps),
            batch.shape.p, batch.inverse);
    __syncthreads();
}

/* Many short rows: a block makes some rows whole. */
template <typename Form, int Maps, typename Out>
__global__ void __launch_bounds__(fold_threads)
    fold_short_rows(__grid_constant__ const Form f, __grid_constant__ const Rows rows,
                    __grid_constant__ const Batch batch, Out *out)
{
    using Word = typename Form::Word;
    __shared__ uint32_t words[tuning::fold_rows * 24];
    __shared__ typename Form::Row keys[tuning::fold_rows];
    __shared__ Word steps[tuning::fold_rows];
    const uint64_t first = uint64_t{blockIdx.x} * batch.rows_a_block;
    const uint64_t left = batch.rows - first;
    const uint32_t mine =
        left < batch.rows_a_block ? static_cast<uint32_t>(left) : batch.rows_a_block;
    make_keys<Form, Maps>(batch, first, mine, words, keys);
    for (uint32_t row = threadIdx.x; row < mine; row += fold_threads)
        steps[row] = step_of(f, keys[row], rows.stride_mod);
    __syncthreads();

    for (uint32_t t = threadIdx.x; t < mine * batch.groups; t += fold_threads) {
        const uint32_t row = batch.groups_inverse ? __umulhi(t, batch.groups_inverse) : t;
        const uint64_t i = uint64_t{group} * (t - row * batch.groups);
        const typename Form::Row &map = keys[row];
        Word x[group];
        spread(f, f.first(map, rows.offset + i * rows.stride), steps[row], x);
        f.rest(map, x);
        finish(f, map, rows, i, x, out + (first + row) * rows.count);
    }
}

/* Many long rows: a block makes some tiles of one of them. */
template <typename Form, int Maps, typename Out>
__global__ void __launch_bounds__(fold_threads, Form::blocks_per_sm - 1)
    fold_long_rows(__grid_constant__ const Form f, __grid_constant__ const Rows rows,
                   __grid_constant__ const Batch batch, Out *out)
{
    using Word = typename Form::Word;
    __shared__ uint32_t words[24];
    __shared__ typename Form::Row keys[1];
    const uint64_t row = blockIdx.x / batch.tiles, part = blockIdx.x % batch.tiles;
    make_keys<Form, Maps>(batch, row, 1, words, keys);
    const Steps<Word> steps = {
        step_of(f, keys[0], rows.stride_mod),
        step_of(f, keys[0], rows.stride_mod * (fold_threads * group) % batch.shape.p)};
    Out *row_out = out + row * rows.count;
    for (int turn = 0; turn < tuning::fold_turns; turn++) {
        const uint64_t i =
            (part * tuning::fold_turns + turn) * fold_tile<Form> + threadIdx.x * group;
        if (i < rows.count)
            tile_of_row(f, keys[0], steps, rows, i, row_out);
    }
}

struct Exchanges {
    uint32_t n;
    uint8_t with[SHUF_PRIMEFOLD_EXACT];
};

/* Few values, one row: a thread follows a position through the exchanges. */
template <typename Out>
__global__ void __launch_bounds__(tuning::quick_threads)
    exchange_quick(__grid_constant__ const Exchanges e, __grid_constant__ const Rows rows,
                   __grid_constant__ const Signal signal, Out *out)
{
    if (threadIdx.x < rows.count) {
        auto x = static_cast<uint32_t>((rows.offset + threadIdx.x * rows.stride) % e.n);
        for (uint32_t k = 1; k < e.n; k++) {
            const uint32_t other = e.with[k];
            x = x == k ? other : x == other ? k : x;
        }
        out[threadIdx.x] = static_cast<Out>(x);
    }
    tell(signal);
}

/* Few values, many rows: a thread shuffles its row, in a column of shared memory. */
template <typename Out>
__global__ void __launch_bounds__(tuning::exchange_rows)
    exchange_rows(__grid_constant__ const Rows rows, __grid_constant__ const Batch batch, Out *out)
{
    constexpr int width = tuning::exchange_rows;
    __shared__ uint8_t value[SHUF_PRIMEFOLD_EXACT * width];
    const auto n = static_cast<uint32_t>(batch.shape.n);
    const uint64_t first = uint64_t{blockIdx.x} * width, left = batch.rows - first;
    const auto mine = static_cast<uint32_t>(left < width ? left : width);
    uint8_t *column = value + threadIdx.x;

    for (uint32_t k = 0; k < n; k++)
        column[k * width] = static_cast<uint8_t>(k);
    for (uint32_t block = (n + 7) / 8; block-- > 0;) {
        uint32_t word[8];
        shuf_key_words_for(n, batch.seed, batch.epoch + first + threadIdx.x, SHUF_PURPOSE_PRIMEFOLD,
                           block, word);
#pragma unroll
        for (int w = 7; w >= 0; w--) {
            const uint32_t k = 8 * block + static_cast<uint32_t>(w);
            if (k < n && k > 0) {
                const uint32_t other = shuf_primefold_exchange(word[w], k);
                const uint8_t a = column[k * width], b = column[other * width];
                column[k * width] = b;
                column[other * width] = a;
            }
        }
    }
    __syncthreads();
    const auto count = static_cast<uint32_t>(rows.count);
    for (uint32_t t = threadIdx.x; t < mine * count; t += width) {
        const uint32_t row = t / count, i = t - row * count;
        const auto position = static_cast<uint32_t>((rows.offset + i * rows.stride) % n);
        out[(first + row) * count + i] = static_cast<Out>(value[position * width + row]);
    }
}

unsigned blocks_for(uint64_t work, uint64_t each)
{
    return static_cast<unsigned>((work + each - 1) / each);
}

Batch make_batch(const shuf__job &job, const shuf_primefold_shape &shape)
{
    Batch batch{};
    batch.shape = shape;
    batch.seed = job.seed;
    batch.epoch = job.epoch;
    batch.rows = job.rows;
    batch.inverse = shape.p ? ~uint64_t{0} / shape.p : 0;
    return batch;
}

template <typename Form, int Maps>
Form make_form(const shuf__job &job, const shuf_primefold_shape &shape)
{
    const shuf_primefold key = shuf_primefold_make(job.n, job.seed, job.epoch);
    Form f(shape);
    for (int r = 0; r < Maps; r++)
        Form::set(f.row, r, key.map[r], shape.p);
    return f;
}

uint64_t multiplied(uint64_t a, uint64_t b, uint64_t p)
{
    return shuf__multiply_mod(a, b % p, p);
}

template <typename Form, int Maps, typename Out>
cudaError_t one_row(const shuf__job &job, const shuf_primefold_shape &shape, void *out,
                    const Signal *signal, cudaStream_t stream)
{
    using Word = typename Form::Word;
    const auto f = make_form<Form, Maps>(job, shape);
    const Rows rows = make_rows(job, shape);
    const uint64_t one = multiplied(f.row.map[0].multiplier, job.stride, shape.p);
    const Steps<Word> steps = {static_cast<Word>(one),
                               static_cast<Word>(multiplied(one, fold_threads * group, shape.p))};
    auto *target = static_cast<Out *>(out);
    if (signal)
        fold_quick<<<1, tuning::quick_threads, 0, stream>>>(f, steps, rows, *signal, target);
    else
        fold_row<<<blocks_for(job.count, fold_tile<Form>), fold_threads, 0, stream>>>(f, steps,
                                                                                      rows, target);
    return cudaGetLastError();
}

template <typename Form, int Maps, typename Out>
cudaError_t many_rows(const shuf__job &job, const shuf_primefold_shape &shape, void *out,
                      cudaStream_t stream)
{
    const Form f(shape);
    const Rows rows = make_rows(job, shape);
    Batch batch = make_batch(job, shape);
    auto *target = static_cast<Out *>(out);
    const uint64_t groups = (job.count + group - 1) / group;
    if (groups <= tuning::fold_short) {
        const uint64_t fit = tuning::fold_block_groups / groups;
        batch.groups = static_cast<uint32_t>(groups);
        batch.groups_inverse =
            groups > 1 ? static_cast<uint32_t>(((uint64_t{1} << 32) + groups - 1) / groups) : 0;
        batch.rows_a_block =
            static_cast<uint32_t>(fit < tuning::fold_rows ? fit : tuning::fold_rows);
        fold_short_rows<Form, Maps>
            <<<blocks_for(job.rows, batch.rows_a_block), fold_threads, 0, stream>>>(f, rows, batch,
                                                                                    target);
    } else {
        batch.tiles = blocks_for(job.count, fold_tile<Form> * tuning::fold_turns);
        const auto grid = static_cast<unsigned>(job.rows * batch.tiles);
        fold_long_rows<Form, Maps><<<grid, fold_threads, 0, stream>>>(f, rows, batch, target);
    }
    return cudaGetLastError();
}

template <typename Out>
cudaError_t exchange(const shuf__job &job, const shuf_primefold_shape &shape, void *out,
                     const Signal *signal, cudaStream_t stream)
{
    const Rows rows = make_rows(job, shape);
    auto *target = static_cast<Out *>(out);
    if (!signal) {
        exchange_rows<<<blocks_for(job.rows, tuning::exchange_rows), tuning::exchange_rows, 0,
                        stream>>>(rows, make_batch(job, shape), target);
        return cudaGetLastError();
    }
    const shuf_primefold key = shuf_primefold_make(job.n, job.seed, job.epoch);
    Exchanges e{static_cast<uint32_t>(job.n), {}};
    for (unsigned k = 1; k < e.n; k++)
        e.with[k] = key.exchange[k];
    exchange_quick<<<1, tuning::quick_threads, 0, stream>>>(e, rows, *signal, target);
    return cudaGetLastError();
}

/* A signal goes with a single row only. */
template <typename Out>
cudaError_t start(const shuf__job &job, void *out, const Signal *signal, cudaStream_t stream)
{
    const shuf_primefold_shape shape = shuf_primefold_shape_of(job.n);
    if (shape.maps == 0)
        return exchange<Out>(job, shape, out, signal, stream);
    if (job.rows > 1 && shape.maps == 5)
        return many_rows<Fold32<5>, 5, Out>(job, shape, out, stream);
    if (job.rows > 1 && shape.p >> 31 == 0)
        return many_rows<Fold32<4>, 4, Out>(job, shape, out, stream);
    if (job.rows > 1)
        return many_rows<Fold64<4>, 4, Out>(job, shape, out, stream);
    if (shape.maps == 5)
        return one_row<Fold32<5>, 5, Out>(job, shape, out, signal, stream);
    if (shape.p >> 31 == 0)
        return one_row<Fold32<4>, 4, Out>(job, shape, out, signal, stream);
    if (shape.p >> 42 == 0)
        return one_row<Fold42<4>, 4, Out>(job, shape, out, signal, stream);
    return one_row<Fold64<4>, 4, Out>(job, shape, out, signal, stream);
}

template <typename Form, int Maps, typename Value>
cudaError_t look_up(const shuf__job &job, const shuf_primefold_shape &shape, const void *at,
                    void *values, cudaStream_t stream)
{
    Rows rows{};
    rows.count = job.count;
    rows.aligned = true;
    fold_look_up<<<blocks_for(job.count, uint64_t{fold_threads} * group), fold_threads, 0,
                   stream>>>(make_form<Form, Maps>(job, shape), rows,
                             static_cast<const Value *>(at), static_cast<Value *>(values));
    return cudaGetLastError();
}

template <typename Value>
cudaError_t start_look_up(const shuf__job &job, const void *at, void *values, cudaStream_t stream)
{
    const shuf_primefold_shape shape = shuf_primefold_shape_of(job.n);
    if (shape.maps == 5)
        return look_up<Fold32<5>, 5, Value>(job, shape, at, values, stream);
    if (shape.p >> 31 == 0)
        return look_up<Fold32<4>, 4, Value>(job, shape, at, values, stream);
    if (shape.p >> 42 == 0)
        return look_up<Fold42<4>, 4, Value>(job, shape, at, values, stream);
    return look_up<Fold64<4>, 4, Value>(job, shape, at, values, stream);
}

template <typename Kernel> void load(cudaError_t &e, Kernel kernel)
{
    cudaFuncAttributes attributes;
    if (e == cudaSuccess)
        e = cudaFuncGetAttributes(&attributes, kernel);
}

template <typename Out> void load_all(cudaError_t &e)
{
    load(e, exchange_quick<Out>);
    load(e, fold_quick<Fold32<5>, Out>);
    load(e, fold_quick<Fold32<4>, Out>);
    load(e, fold_quick<Fold42<4>, Out>);
    load(e, fold_quick<Fold64<4>, Out>);
}

} // namespace

cudaError_t primefold_async(const shuf__job &job, void *out, const Signal *signal,
                            cudaStream_t stream)
{
    return job.width == 4 ? start<uint32_t>(job, out, signal, stream)
                          : start<uint64_t>(job, out, signal, stream);
}

cudaError_t primefold_look_up_async(const shuf__job &job, const void *at, void *values,
                                    cudaStream_t stream)
{
    if (job.n <= SHUF_PRIMEFOLD_EXACT)
        return cudaErrorInvalidValue;
    return job.width == 4 ? start_look_up<uint32_t>(job, at, values, stream)
                          : start_look_up<uint64_t>(job, at, values, stream);
}

cudaError_t primefold_load()
{
    cudaError_t e = cudaSuccess;
    load_all<uint32_t>(e);
    load_all<uint64_t>(e);
    return e;
}

} // namespace shuf
