/* SPDX-License-Identifier: MIT
 *
 * Computes many rows of `primefold` in one launch. A block computes the keys of its rows itself.
 */
#include "permute.cuh"

#include "fold_keys.cuh"
#include "tuning.cuh"

namespace shuf
{

namespace
{

/* The rows of a launch, as the blocks need them to compute the keys. */
struct Batch : RowKeys {
    uint64_t rows;
    uint32_t rows_a_block;
    uint32_t groups;                     /* of a short row; a group of exchange_rows is one value */
    uint32_t rows_a_turn, groups_a_turn; /* from a thread's group to its next */
    uint32_t tiles;                      /* the number of blocks that share a long row */
};

/* The number of tiles of a long row that a block computes. */
template <typename Form> constexpr uint32_t fold_turns = tuning::fold_turns / Form::groups;

/* Groups that must be repaired. The block does this after all other groups, because the repair of a
 * few values would delay whole warps. */
struct Leftovers {
    uint32_t count, group[tuning::fold_block_groups]; /* row << 16 | all values << 15 | group */

    __device__ __forceinline__ void take(uint32_t row, uint32_t g, bool all)
    {
        group[shared_count(count)] = row << 16 | (all ? 1u << 15 : 0) | g;
    }
};

/* Many short rows: a block computes some whole rows. */
template <typename Form, int Maps, typename Out>
__global__ void __launch_bounds__(fold_threads, Form::row_blocks_per_sm)
    fold_short_rows(__grid_constant__ const Form f, __grid_constant__ const Rows rows,
                    __grid_constant__ const Batch batch, Out *out)
{
    using Word = typename Form::Word;
    __shared__ typename Form::Row keys[tuning::fold_rows];
    __shared__ Word steps[tuning::fold_rows];
    static_assert(tuning::fold_rows <= fold_threads, "a thread makes a step");
    __shared__ Leftovers left;
    const uint64_t first = uint64_t{blockIdx.x} * batch.rows_a_block;
    const uint64_t rows_left = batch.rows - first;
    const uint32_t mine =
        rows_left < batch.rows_a_block ? static_cast<uint32_t>(rows_left) : batch.rows_a_block;
    const auto count = static_cast<uint32_t>(rows.count), whole = static_cast<uint32_t>(rows.whole);
    static_assert(tuning::fold_rows * 8 * key_blocks<Form, Maps> <= tuning::fold_block_groups,
                  "the key words fit the memory of the list");
    make_rows_here<Form, Maps>(f, batch, first, mine, left.group, keys);
    if (threadIdx.x < mine)
        steps[threadIdx.x] = f.step_there(keys[threadIdx.x], rows.one);
    if (threadIdx.x == 0)
        left.count = 0;
    __syncthreads();

    uint64_t before = first * rows.count;
    asm("" : "+l"(before)); /* else the compiler would compute it again for every group */
    out += before;
    uint32_t row = threadIdx.x / batch.groups, g = threadIdx.x % batch.groups;
    while (row < mine) {
        const uint32_t i = group * g;
        Word x[1][group];
        uint32_t met = 0;
        spread(f, f.start(keys[row], rows.offset + i * rows.stride), steps[row], x[0]);
        f.evaluate_unchecked(keys[row], x, met);
        Out *const here = out + (row * count + i);
        if (i + group <= whole)
            put_group(here, x[0]);
        else
            put_some(here, x[0], count - i);
        const bool last = rows.wraps && i + group >= count;
        if (!finished(f, met, x[0]) || last) /* a truncated value may be below n by chance */
            left.take(row, g, !f.in_range(met) || last || sizeof(Out) < sizeof(Word));
        row += batch.rows_a_turn, g += batch.groups_a_turn;
        if (g >= batch.groups)
            row++, g -= batch.groups;
    }
    __syncthreads();
    for (uint32_t k = threadIdx.x; k < left.count; k += fold_threads) {
        const uint32_t item = left.group[k], of = item >> 16, i = group * (item & 0x7fff);
        Out *const row_out = out + of * count;
        uint32_t which = 0; /* a bit for each value */
#pragma unroll
        for (uint32_t c = 0; c < group; c++)
            if (i + c < count && (item >> 15 & 1 || row_out[i + c] >= f.n))
                which |= 1u << c;
#pragma unroll 1
        for (; which != 0; which &= which - 1) {
            const uint32_t at = i + (__ffs(static_cast<int>(which)) - 1);
            repair(f, keys[of], rows, at, row_out + at);
        }
    }
}

/* Many long rows: a block computes some tiles of one row. */
template <typename Form, int Maps, typename Out>
__global__ void __launch_bounds__(fold_threads, Form::row_blocks_per_sm)
    fold_long_rows(__grid_constant__ const Form f, __grid_constant__ const Rows rows,
                   __grid_constant__ const Batch batch, Out *out)
{
    using Word = typename Form::Word;
    __shared__ typename Form::Row keys;
    __shared__ uint32_t words[8 * key_blocks<Form, Maps>];
    const uint64_t row = blockIdx.x / batch.tiles, part = blockIdx.x % batch.tiles;
    make_rows_here<Form, Maps>(f, batch, row, 1, words, &keys);
    const Steps<Word> steps = {f.step_there(keys, rows.one), f.step_there(keys, rows.leap)};
    constexpr uint32_t values = fold_turns<Form> * fold_tile<Form>;
    const uint64_t first = part * values;
    tiles_of_row(f, keys, rows, steps, first, values, out + row * rows.count + first);
}

/* Many rows of few values: each thread shuffles one row, in a column of shared memory. The columns
 * have gaps between their bytes, so that neighbouring values of a row are in different banks. */
constexpr int exchange_pitch = tuning::exchange_rows + 4;

template <typename Out>
__global__ void __launch_bounds__(tuning::exchange_rows)
    exchange_rows(__grid_constant__ const Rows rows, __grid_constant__ const Batch batch, Out *out)
{
    constexpr int width = tuning::exchange_rows, pitch = exchange_pitch;
    extern __shared__ uint8_t value[]; /* n times `pitch` bytes */
    const auto n = static_cast<uint32_t>(batch.shape.n);
    const uint64_t first = uint64_t{blockIdx.x} * width, left = batch.rows - first;
    const auto mine = static_cast<uint32_t>(left < width ? left : width);
    uint8_t *column = value + threadIdx.x;

    for (uint32_t k = 0; k < n; k++)
        column[k * pitch] = static_cast<uint8_t>(k);
    for (uint32_t block = (n + 7) / 8; block-- > 0;) {
        uint32_t word[8];
        shuf_key_words_for(n, batch.key, batch.epoch + first + threadIdx.x, SHUF_PURPOSE_PRIMEFOLD,
                           block, word);
#pragma unroll
        for (int w = 7; w >= 0; w--) {
            const uint32_t k = 8 * block + static_cast<uint32_t>(w);
            if (k < n && k > 0) {
                const uint32_t other = shuf_primefold_exchange(word[w], k);
                const uint8_t a = column[k * pitch], b = column[other * pitch];
                column[k * pitch] = b;
                column[other * pitch] = a;
            }
        }
    }
    __syncthreads();
    const auto count = static_cast<uint32_t>(rows.count);
    out += first * count;
    uint32_t row = threadIdx.x / count, i = threadIdx.x % count;
    for (uint32_t t = threadIdx.x; t < mine * count; t += width) {
        const auto position = static_cast<uint32_t>(rows.position(i));
        out[t] = static_cast<Out>(value[position * pitch + row]);
        row += batch.rows_a_turn, i += batch.groups_a_turn;
        if (i >= count)
            row++, i -= count;
    }
}

/* The batch, if a block computes its rows in groups of `each` values, one group in each of
 * `threads` threads at a time. */
Batch make_batch(const shuf__permutation &p, const shuf_primefold_shape &shape, uint64_t each,
                 uint64_t threads)
{
    const uint64_t groups = (p.count + each - 1) / each;
    Batch batch{};
    batch.groups = static_cast<uint32_t>(groups);
    batch.rows_a_turn = static_cast<uint32_t>(threads / groups);
    batch.groups_a_turn = static_cast<uint32_t>(threads % groups);
    batch.shape = shape;
    batch.key = shuf__permutation_key(&p);
    batch.epoch = p.epoch;
    batch.rows = p.rows;
    return batch;
}

template <typename Form, int Maps, typename Out>
cudaError_t many_rows(const shuf__permutation &p, const shuf_primefold_shape &shape, void *out,
                      cudaStream_t stream)
{
    static_assert(IsForm<Form, group>::value);
    const Form f(shape);
    const Rows rows = make_rows_for<Form>(p, shape.p);
    Batch batch = make_batch(p, shape, group, fold_threads);
    auto *target = static_cast<Out *>(out);
    if (batch.groups <= tuning::fold_short) {
        const uint64_t fit = tuning::fold_block_groups / batch.groups;
        batch.rows_a_block =
            static_cast<uint32_t>(fit < tuning::fold_rows ? fit : tuning::fold_rows);
        fold_short_rows<Form, Maps>
            <<<blocks_for(p.rows, batch.rows_a_block), fold_threads, 0, stream>>>(f, rows, batch,
                                                                                  target);
    } else {
        batch.tiles = blocks_for(p.count, fold_tile<Form> * fold_turns<Form>);
        const auto grid = static_cast<unsigned>(p.rows * batch.tiles);
        fold_long_rows<Form, Maps><<<grid, fold_threads, 0, stream>>>(f, rows, batch, target);
    }
    return cudaGetLastError();
}

template <typename Out>
cudaError_t exchange(const shuf__permutation &p, const shuf_primefold_shape &shape, void *out,
                     cudaStream_t stream)
{
    constexpr int width = tuning::exchange_rows;
    exchange_rows<<<blocks_for(p.rows, width), width, p.n * exchange_pitch, stream>>>(
        make_rows(p), make_batch(p, shape, 1, width), static_cast<Out *>(out));
    return cudaGetLastError();
}

template <typename Out>
cudaError_t start(const shuf__permutation &p, const shuf_primefold_shape &shape, void *out,
                  cudaStream_t stream)
{
    if (shape.maps == 0)
        return exchange<Out>(p, shape, out, stream);
    return with_row_form(shape, [&](auto *form, auto maps) {
        using Form = std::remove_pointer_t<decltype(form)>;
        return many_rows<Form, decltype(maps)::value, Out>(p, shape, out, stream);
    });
}

} // namespace

cudaError_t primefold_rows_async(const shuf__permutation &p, unsigned width,
                                 const shuf_primefold_shape &shape, void *out, cudaStream_t stream)
{
    return width == 4 ? start<uint32_t>(p, shape, out, stream)
                      : start<uint64_t>(p, shape, out, stream);
}

} // namespace shuf
