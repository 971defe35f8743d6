/* SPDX-License-Identifier: MIT
 *
 * The contract of a form. A form is the code that computes `primefold` (shuf/primefold.h) for some
 * range of p, with one size of machine words. The CPU's forms are made by simd/primefold_form.inc.
 * The GPU's forms are the structs of cuda/fold16.cuh, fold32.cuh and fold64.cuh. A form computes
 * values of positions or, with inverted maps (inverse.h), positions of values. It takes three
 * steps:
 *
 * 1. Speculative evaluation. Groups of values go through all maps without a branch. The code
 *    assumes that every number is in the range for which its arithmetic is exact (GPU:
 *    evaluate_unchecked(), CPU: FORM(block)). Step 2 must detect every error that this can make.
 * 2. Range check. If the largest number of a group is in range, all are. Every form compares the
 *    values with n: a value from n to p - 1 must go through the maps again (GPU: is_below(most()),
 *    CPU: FORM(any_from)). Some forms are exact only for numbers below a limit. They also keep the
 *    largest number before a fold in `met`; in_range(met) says whether all results are right. A
 *    form with RangeCheck::off omits this step. A second kernel then corrects the wrong values.
 * 3. Repair. If a group fails the check, the code computes its wrong values again, one at a time,
 *    by exact maps and cycle walking: it applies the permutation of [0, p) until the value is below
 *    n (GPU: cycle_walk(), CPU: FORM(walk)). The walk begins at the position. It may begin at
 *    settled(value) instead, if in_range() was true and the form has is_right_past_n: then its
 *    values from n to p - 1 are right too.
 */
#ifndef SHUF__PRIMEFOLD_FORM_H
#define SHUF__PRIMEFOLD_FORM_H

#ifdef __cplusplus

#include <cstdint>
#include <type_traits>
#include <utility>

namespace shuf
{

/* Checks at compile time that a type is a form with groups of `Group` values. */
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

/* Checks at compile time that the types of one instance of primefold_form.inc fit together. */
#define SHUF__CHECK_FORM(vector, lanes, word, wider, out)                                   \
    _Static_assert(sizeof(vector) == (lanes) * sizeof(word), "a vector holds lanes words"); \
    _Static_assert(sizeof(wider) == 2 * sizeof(word), "a product fits WIDER");              \
    _Static_assert(sizeof(out) >= sizeof(word), "a value is stored whole")

#endif

#endif
