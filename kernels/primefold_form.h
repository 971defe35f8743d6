/* SPDX-License-Identifier: MIT
 *
 * The contract of a primefold form: the arithmetic of `primefold` (shuf/primefold.h) for some range
 * of p, in the words of one processor. The CPU's forms are instances of simd/primefold_form.inc,
 * the GPU's are the structs of cuda/fold16.cuh, fold32.cuh and fold64.cuh. Each computes values of
 * positions or, with inverted maps (inverse.h), positions of values, in three steps:
 *
 * 1. Speculative evaluation. Groups of values go through all maps without a branch, as if every
 *    number were in range (GPU: evaluate_unchecked(), CPU: FORM(block)). A form may get a number
 *    wrong only if step 2 notices it.
 * 2. Range check. The largest number of a group shows whether all are in range. All forms compare
 *    the values with n, since values of [n, p) belong to no position (GPU: is_below(most()), CPU:
 *    FORM(any_from)). A form whose maps or folds are exact only for smaller numbers also keeps the
 *    largest number before a fold in `met`, and in_range(met) says whether all results are right.
 *    A form with RangeCheck::off leaves this to a second kernel, which knows the wrong numbers.
 * 3. Repair. A group that fails the check is computed again by exact maps, one value at a time, and
 *    cycle walking: the permutation of [0, p) is applied until the value is below n (GPU:
 *    cycle_walk(), CPU: FORM(walk)). If all numbers were in_range() and the form is_right_past_n,
 *    the walk may continue from settled(value). Otherwise it starts at the position.
 */
#ifndef SHUF__PRIMEFOLD_FORM_H
#define SHUF__PRIMEFOLD_FORM_H

#ifdef __cplusplus

#include <cstdint>
#include <type_traits>
#include <utility>

namespace shuf
{

/* Refuses at compile time a type that is not a form of groups of so many values. */
template <typename Form, int Group> constexpr bool is_form()
{
    using Word = typename Form::Word;
    using Keys = const typename Form::Row &;
    using Values = Word(&)[1][Group];
    using Const = const Form &;
    static_assert(std::is_unsigned_v<Word>, "a number is an unsigned word");
    static_assert(std::is_trivially_copyable_v<Form>, "a form is a parameter of kernels");
    static_assert(Form::groups > 0 && Form::blocks_per_sm > 0, "tuning numbers");
    static_assert(std::is_same_v<decltype(Form::checks_range), const bool> &&
                      std::is_same_v<decltype(Form::is_right_past_n), const bool>,
                  "known to the compiler");
    static_assert(
        std::is_same_v<decltype(std::declval<Const>().start(std::declval<Keys>(), std::uint64_t{})),
                       Word> &&
            std::is_same_v<decltype(std::declval<Const>().add(Word{}, Word{})), Word> &&
            std::is_same_v<decltype(std::declval<Const>().first(Word{})), Word> &&
            std::is_same_v<decltype(std::declval<Const>().rest(std::declval<Keys>(), Word{})),
                           Word>,
        "exact maps, for repairs");
    static_assert(
        std::is_void_v<decltype(std::declval<Const>().evaluate_unchecked(
            std::declval<Keys>(), std::declval<Values>(), std::declval<std::uint32_t &>()))>,
        "speculative evaluation");
    static_assert(
        std::is_same_v<decltype(std::declval<Const>().in_range(std::uint32_t{})), bool> &&
            std::is_same_v<decltype(std::declval<Const>().is_below(
                               std::declval<Const>().most(std::declval<const Word(&)[Group]>()))),
                           bool>,
        "range check");
    static_assert(std::is_same_v<decltype(std::declval<Const>().settled(Word{})), Word>,
                  "where a walk goes on");
    return true;
}

} // namespace shuf

#else

/* Refuses at compile time an instance of primefold_form.inc whose types do not fit together. */
#define SHUF__CHECK_FORM(vector, lanes, word, wider, out)                                   \
    _Static_assert(sizeof(vector) == (lanes) * sizeof(word), "a vector holds lanes words"); \
    _Static_assert(sizeof(wider) == 2 * sizeof(word), "a product fits WIDER");              \
    _Static_assert(sizeof(out) >= sizeof(word), "a value is stored whole")

#endif

#endif
