/* SPDX-License-Identifier: MIT
 *
 * The contract of a *form*: the code that computes `primefold` (shuf/primefold.h) in words of one
 * size, for a range of p. simd/primefold_form.inc makes the CPU's forms. The GPU's forms are the
 * structs of cuda/fold16.cuh, fold32.cuh, fold_double.cuh and fold64.cuh. With inverted maps
 * (simd/primefold.h), a form computes positions of values instead of values of positions.
 *
 * A form takes three steps:
 *
 * 1. Speculative evaluation (GPU: evaluate_unchecked(), CPU: FORM(block)). Groups of values go
 *    through all maps without a branch. The arithmetic of some forms is exact only for numbers
 *    below a limit. This step assumes that all numbers are in this range. Step 2 must detect every
 *    error.
 * 2. Range check. It compares the largest value of a group with n, because a value from n to p - 1
 *    must go through all steps again (GPU: is_below(most()), CPU: FORM(any_from)). A form with a
 *    limit also keeps the largest number before a fold in `met`. If in_range(met) is true, all
 *    values below n are right. With RangeCheck::off there is no check, and a second kernel corrects
 *    the wrong values.
 * 3. Repair, if a group fails the check. Exact maps apply the permutation of [0, p) until the value
 *    is below n: cycle walking (GPU: cycle_walk(), for one value in each thread; CPU: FORM(walk),
 *    for a list of values). Normally the walk restarts at the position. It can instead go on from
 *    the computed value, if this value is right although it is n or more. With CPU forms such a
 *    value is always right. With GPU forms such a value is right if in_range(met) is true and the
 *    form sets is_right_past_n. Some GPU forms leave a right value too large by p, so
 *    settled(value) reduces the value first.
 */
#ifndef SHUF__PRIMEFOLD_FORM_H
#define SHUF__PRIMEFOLD_FORM_H

#ifdef __cplusplus

#include <cstdint>
#include <type_traits>
#include <utility>

namespace shuf
{

/* Checks at compile time that a type is a form with groups of `Group` values. A class, because CUDA
 * 11 lets no function of the host name those of the device. */
template <typename Form, int Group> struct IsForm : std::true_type {
    using Word = typename Form::Word;
    using Keys = const typename Form::Row &;
    using Values = Word (&)[1][Group];
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
                               std::declval<Const>().most(std::declval<const Word (&)[Group]>()))),
                           bool>,
        "range check");
    static_assert(std::is_same_v<decltype(std::declval<Const>().settled(Word{})), Word>,
                  "where a walk goes on");
};

} // namespace shuf

#else

/* Checks at compile time that the types of one instance of primefold_form.inc fit together. */
#define SHUF__CHECK_FORM(vector, lanes, word, wider, out)                                   \
    _Static_assert(sizeof(vector) == (lanes) * sizeof(word), "a vector holds lanes words"); \
    _Static_assert(sizeof(wider) == 2 * sizeof(word), "a product fits WIDER");              \
    _Static_assert(sizeof(out) >= sizeof(word), "a value is stored whole")

#endif

#endif
