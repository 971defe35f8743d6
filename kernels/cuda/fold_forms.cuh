/* SPDX-License-Identifier: MIT
 *
 * Chooses the form (primefold_form.h) for a prime, and makes a form with the keys of one row, in
 * either direction.
 */
#ifndef SHUF__CUDA_FOLD_FORMS_CUH
#define SHUF__CUDA_FOLD_FORMS_CUH

#include "backend.h"
#include "fold16.cuh"
#include "fold32.cuh"
#include "fold64.cuh"
#include "fold_double.cuh"
#include "fold_rows.cuh"
#include "simd/primefold.h"

namespace shuf
{

template <typename Form_, Direction direction = Direction::forward> struct FormOf {
    using Form = Form_;
    static_assert(IsForm<Form, group>::value);

    static Form make(const shuf__permutation &p, const shuf_primefold_shape &shape)
    {
        shuf_primefold key = shuf_primefold_make_of(&shape, shuf__permutation_key(&p), p.epoch);
        if constexpr (direction == Direction::inverse) {
            shuf__invert_maps(&key);
            for (unsigned r = 0; r < shape.maps && !shuf_primefold_is_small(&shape); r++)
                key.map[r].fold = shuf_primefold_unfold(&key, r, 0);
        }
        Form f(shape);
        for (unsigned r = 0; r < shape.maps; r++)
            Form::set(f.row, r, key.map[r], shape.p);
        Form::set_addend(f.row, key.addend, shape.p);
        return f;
    }
};

/* Calls use(FormOf<...>{}) with the form for a shape. n must be above SHUF_PRIMEFOLD_EXACT. If n -
 * 1 has more than SHUF_PRIMEFOLD_MEDIUM_BITS bits, the caller can set Many, which leaves out the
 * forms for smaller n. */
template <Direction direction = Direction::forward, bool Many = false, typename Use>
cudaError_t with_form(const shuf_primefold_shape &shape, Use use)
{
    const unsigned n_bits = shuf__bits(shape.n - 1);
    constexpr int few_maps = SHUF_PRIMEFOLD_MAPS_LARGE_62;
    if constexpr (!Many) {
        if (shuf_primefold_is_small(&shape))
            return use(FormOf<Fold16<SHUF_PRIMEFOLD_MAPS, false, direction>, direction>{});
        if (n_bits <= SHUF_PRIMEFOLD_MEDIUM_BITS)
            return use(FormOf<Fold32<SHUF_PRIMEFOLD_MAPS_LARGE_21, direction>, direction>{});
    }
    if (shape.p >> 31 == 0)
        return use(FormOf<Fold32<few_maps, direction>, direction>{});
    if (shape.p >> 32 == 0)
        return use(FormOf<Fold32Whole<few_maps, direction>, direction>{});
    if constexpr (direction == Direction::forward)
        if (shape.p >> FoldDouble<few_maps>::most_bits == 0)
            return use(FormOf<FoldDouble<few_maps>>{});
    return use(FormOf<Fold64<few_maps, direction>, direction>{});
}

/* The steps of a row (fold_rows.cuh) for a block of `threads` threads with neighbouring groups. */
template <typename Form>
Steps<typename Form::Word> make_steps(const Form &f, uint64_t p, uint64_t stride,
                                      uint64_t threads = fold_threads)
{
    return {f.step_of(f.row, Form::distance(stride, 1, p), p),
            f.step_of(f.row, Form::distance(stride, threads * group, p), p)};
}

} // namespace shuf

#endif
