/* SPDX-License-Identifier: MIT
 *
 * See inversions.h. The code sorts the values and counts inversions meanwhile. A merge sort would
 * mispredict half of its branches, so this sort has no branches. It partitions the values by one
 * bit after the other, from the highest bit on, and keeps the order of values with equal bits. Each
 * value whose bit is 0 makes an inversion with every earlier value whose bit is 1. The values are a
 * permutation, so the values with the same upper bits fill exactly the positions with these upper
 * bits. For the last six bits the code has a 64-bit mask of the values that it has seen.
 */
#include "inversions.h"

#include <stddef.h>

enum { WORD_BITS = 6 };

/* Partitions one group of `size` values, from `from` to `to`. The values whose bit is 1 go to place
 * `ones` and the places after it. */
static inline uint64_t part_group(const uint32_t *from, uint32_t *to, size_t size, size_t ones,
                                  unsigned bit)
{
    uint64_t inversions = 0;
    size_t zero = 0, one = ones;
    for (size_t i = 0; i < size; i++) {
        const size_t value = from[i], set = value >> bit & 1, is_one = 0 - set;
        to[zero ^ ((zero ^ one) & is_one)] = (uint32_t)value;
        inversions += one & ~is_one;
        one += set;
        zero += set ^ 1;
    }
    return inversions - zero * ones; /* the loop added `ones` too often, once for each zero */
}

static uint64_t part_all(uint32_t n, const uint32_t *from, uint32_t *to, unsigned bit)
{
    const size_t half = (size_t)1 << bit;
    uint64_t inversions = 0;
    for (size_t start = 0; start < n; start += 2 * half) {
        const size_t size = n - start < 2 * half ? n - start : 2 * half;
        inversions += part_group(from + start, to + start, size, half, bit);
    }
    return inversions;
}

static inline __attribute__((always_inline)) uint64_t count_words(uint32_t n,
                                                                  const uint32_t *values)
{
    uint64_t inversions = 0;
    for (size_t start = 0; start < n; start += 64) {
        const size_t end = n - start < 64 ? n : start + 64;
        uint64_t seen = 0;
        for (size_t i = start; i < end; i++) {
            const unsigned low = values[i] & 63;
            inversions += (unsigned)__builtin_popcountll(seen >> low);
            seen |= UINT64_C(1) << low;
        }
    }
    return inversions;
}

#ifdef __x86_64__
__attribute__((target("popcnt"))) static uint64_t count_words_popcnt(uint32_t n,
                                                                     const uint32_t *values)
{
    return count_words(n, values);
}
#endif

static uint64_t within_words(uint32_t n, const uint32_t *values)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("popcnt"))
        return count_words_popcnt(n, values);
#endif
    return count_words(n, values);
}

uint64_t shuf__inversions(uint32_t n, uint32_t *values, uint32_t *scratch)
{
    unsigned bits = WORD_BITS;
    uint64_t inversions = 0;
    while ((n - 1) >> bits != 0)
        bits++;
    for (unsigned bit = bits; bit-- > WORD_BITS;) {
        inversions += part_all(n, values, scratch, bit);
        uint32_t *parted = scratch;
        scratch = values;
        values = parted;
    }
    return inversions + within_words(n, values);
}
