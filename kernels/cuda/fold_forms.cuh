/* SPDX-License-Identifier: MIT
 *
 * Which form suits a prime, and a form with the keys of one row, either way.
 */
#ifndef SHUF__CUDA_FOLD_FORMS_CUH
#define SHUF__CUDA_FOLD_FORMS_CUH

#include "backend.h"
#include "fold16.cuh"
#include "fold32.cuh"
#include "fold64.cuh"
#include "fold_rows.cuh"
#include "turn.h"

namespace shuf
{

template <typename Form_, int Maps_, Way way = Way::forward> struct FormOf {
    using Form = Form_;
    static constexpr int maps = Maps_;

    static Form make(const shuf__job &job, const shuf_primefold_shape &shape)
    {
        shuf_primefold key = shuf_primefold_make_of(&shape, job.seed, job.epoch);
        if constexpr (way == Way::backward) {
            shuf__turn(&key);
            for (int r = 0; r < maps; r++)
                key.map[r].fold = shuf_primefold_unfold(&key, r, 0);
        }
        Form f(shape);
        for (int r = 0; r < maps; r++)
            Form::set(f.row, r, key.map[r], shape.p);
        return f;
    }
};

/* use(FormOf<...>{}), for n > SHUF_PRIMEFOLD_EXACT. hasty: the whole row is wanted. */
template <Way way = Way::forward, typename Use>
cudaError_t with_form(const shuf_primefold_shape &shape, bool hasty, Use use)
{
    if (shape.maps == 5)
        return use(FormOf<Fold16<5, way>, 5, way>{});
    const bool few_parts = way == Way::forward || 4 * shape.shift >= shape.bits;
    if (shape.p >> 31 == 0 && hasty && few_parts && few_beyond(shape))
        return use(FormOf<Fold32<4, true, way>, 4, way>{});
    if (shape.p >> 31 == 0)
        return use(FormOf<Fold32<4, false, way>, 4, way>{});
    if constexpr (way == Way::forward)
        if (shape.p >> 40 == 0)
            return use(FormOf<Fold40<4>, 4>{});
    return use(FormOf<Fold64<4, way>, 4, way>{});
}

/* The steps of a row by a block of so many threads, whose groups follow one another. */
template <typename Form>
Steps<typename Form::Word> make_steps(const Form &f, uint64_t p, uint64_t stride,
                                      uint64_t threads = fold_threads)
{
    return {f.step_of(f.row, Form::distance(stride, 1, p), p),
            f.step_of(f.row, Form::distance(stride, threads * group, p), p)};
}

} // namespace shuf

#endif
