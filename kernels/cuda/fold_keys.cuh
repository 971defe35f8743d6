/* SPDX-License-Identifier: MIT
 *
 * The keys of rows of `primefold`, which the threads of a block compute together.
 */
#ifndef SHUF__CUDA_FOLD_KEYS_CUH
#define SHUF__CUDA_FOLD_KEYS_CUH

#include "fold16.cuh"
#include "fold32.cuh"
#include "fold64.cuh"
#include "fold_rows.cuh"

namespace shuf
{

/* The keys of the rows of a launch depend on this. `epoch` is that of the first row. */
struct RowKeys {
    shuf_primefold_shape shape;
    shuf_key key;
    uint64_t epoch;
};

template <typename Form> constexpr bool is_small = false;
template <int Maps> constexpr bool is_small<Fold16<Maps, true>> = true;

/* The shape of the rows. It tells the compiler the properties that follow from Form and Maps. */
template <typename Form, int Maps>
__device__ __forceinline__ shuf_primefold_shape shape_of(const RowKeys &rows_keys)
{
    shuf_primefold_shape shape = rows_keys.shape;
    shape.maps = Maps;
    if (is_small<Form>)
        shape.p = static_cast<uint16_t>(shape.p);
    else if (shuf_primefold_is_small(&shape))
        __builtin_unreachable();
    return shape;
}

template <typename Form, int Maps>
constexpr uint32_t key_blocks = ((is_small<Form> ? 2 : 4) * Maps + 7) / 8;

/* Computes the key words of some rows, then their maps. The threads of a block share this work.
 * `words` is scratch memory for the key words. */
template <typename Form, int Maps>
__device__ __forceinline__ void make_rows_here(const Form &f, const RowKeys &rows_keys,
                                               uint64_t first, uint32_t rows, uint32_t *words,
                                               typename Form::Row *keys)
{
    constexpr uint32_t blocks = key_blocks<Form, Maps>;
    const shuf_primefold_shape shape = shape_of<Form, Maps>(rows_keys);
#pragma unroll 1
    for (uint32_t k = threadIdx.x; k < rows * blocks; k += fold_threads)
        shuf_key_words_for(shape.n, rows_keys.key, rows_keys.epoch + first + k / blocks,
                           SHUF_PURPOSE_PRIMEFOLD, k % blocks, words + 8 * k);
    __syncthreads();
#pragma unroll 1
    for (uint32_t k = threadIdx.x; k < rows * Maps; k += fold_threads) {
        const uint32_t row = k / Maps, r = k % Maps;
        shuf_primefold_map map = shuf_primefold_map_of(&shape, words + 8 * blocks * row, r);
        if (r > 0)
            shuf_primefold_strengthen(&shape, &map, 1);
        f.set_there(keys[row], r, map);
        if (r == 0)
            f.set_addend_there(keys[row],
                               shuf_primefold_addend_of(&shape, words + 8 * blocks * row));
    }
    __syncthreads();
}

/* Calls use(form, maps) with types for the shape: a pointer to the form, and the number of maps as
 * a constant. The shape must have maps. FoldDouble is not used, because its keys would need
 * divisions in double precision here. */
template <typename Use> cudaError_t with_row_form(const shuf_primefold_shape &shape, Use use)
{
#define SMALL(k)                                                             \
    use(static_cast<Fold16<SHUF_PRIMEFOLD_MAPS_SMALL_##k, true> *>(nullptr), \
        std::integral_constant<int, SHUF_PRIMEFOLD_MAPS_SMALL_##k>{})
#define LARGE(form, k)                                               \
    use(static_cast<form<SHUF_PRIMEFOLD_MAPS_LARGE_##k> *>(nullptr), \
        std::integral_constant<int, SHUF_PRIMEFOLD_MAPS_LARGE_##k>{})
    if (shuf_primefold_is_small(&shape))
        return shape.bits <= 9    ? SMALL(9)
               : shape.bits <= 10 ? SMALL(10)
               : shape.bits <= 13 ? SMALL(13)
                                  : SMALL(16);
    if (shuf__bits(shape.n - 1) <= SHUF_PRIMEFOLD_MEDIUM_BITS)
        return LARGE(Fold32, 21);
    return shape.p >> 31 == 0 ? LARGE(Fold32, 62) : LARGE(Fold64, 62);
#undef SMALL
#undef LARGE
}

} // namespace shuf

#endif
