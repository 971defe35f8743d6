/* SPDX-License-Identifier: MIT
 *
 * The operations of primefold_vector.h on single words: a vector has one lane. This file has no
 * include guard, because primefold_form.inc includes it several times, with other definitions of
 * BITS, WORD, WIDER and FORM().
 */
typedef WORD FORM(vector);

enum { FORM(LANES) = 1 };

static inline WORD FORM(all)(WORD word)
{
    return word;
}

static inline WORD FORM(add)(WORD a, WORD b)
{
    return (WORD)(a + b);
}

static inline WORD FORM(subtract)(WORD a, WORD b)
{
    return (WORD)(a - b);
}

static inline WORD FORM(smaller)(WORD a, WORD b)
{
    return a < b ? a : b;
}

static inline WORD FORM(larger)(WORD a, WORD b)
{
    return a > b ? a : b;
}

static inline WORD FORM(low_product)(WORD a, WORD b)
{
    return (WORD)((WIDER)a * b);
}

static inline WORD FORM(high_product)(WORD a, WORD b)
{
    return (WORD)((WIDER)a * b >> BITS);
}

static inline WORD FORM(right)(WORD x, int by)
{
    return (WORD)(x >> by);
}

/* A mask of the bits below the highest set bit of y. */
static inline WORD FORM(below_top)(WORD y)
{
    return (WORD)((UINT64_C(1) << (63 - __builtin_clzll(y))) - 1);
}

static inline WORD FORM (xor)(WORD a, WORD b)
{
    return a ^ b;
}

static inline WORD FORM (and)(WORD a, WORD b)
{
    return a & b;
}

static inline WORD FORM(and_not)(WORD a, WORD b)
{
    return a & (WORD)~b;
}

static inline WORD FORM(xor_where)(WORD x, WORD a, WORD b, WORD where)
{
    return (WORD)(x ^ ((a ^ b) & where));
}

static inline WORD FORM(xor_below)(WORD x, WORD a, WORD b, WORD limit)
{
    return (WORD)(x ^ (x < limit ? a ^ b : 0));
}

static inline bool FORM(any_from)(WORD x, WORD limit)
{
    return x >= limit;
}

static inline WORD FORM(load)(const WORD *words)
{
    return *words;
}

static inline void FORM(store)(OUT *out, WORD x)
{
    *out = x;
}

/* A bit for each of 64 values: whether it is `limit` or more. */
static inline uint64_t FORM(which_from)(const OUT values[64], OUT limit)
{
    uint64_t which = 0;
    for (int i = 0; i < 64; i++)
        which |= (uint64_t)(values[i] >= limit) << i;
    return which;
}
