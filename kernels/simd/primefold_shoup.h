/* SPDX-License-Identifier: MIT
 *
 * The maps and folds of `primefold` by Shoup's multiplication (primefold.h), in vectors of words:
 * those of primefold_vector.h or primefold_neon.h, or single words. This file has no include guard,
 * because primefold_form.inc includes it several times, with other definitions of BITS, WORD, WIDER
 * and FORM().
 */
#if BITS == 64 || !defined(SHUF__SIMD_VECTORS)

/* ---- The operations of primefold_vector.h on single words: a vector has one lane ---- */

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

static inline WORD FORM(high_factor)(WORD y)
{
    return y;
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

#endif

/* ---- Maps and folds ---- */

/* The keys of a row. Each is repeated in all lanes. p < 2^(BITS - 1). */
struct FORM(keys) {
    FORM(vector) p, whole; /* with a large p, a fold changes only values below `whole` */
    FORM(vector) multiplier[SHUF_PRIMEFOLD_MAPS], quotient[SHUF_PRIMEFOLD_MAPS];
    FORM(vector) fold[SHUF_PRIMEFOLD_MAPS], addend;
};

static inline struct FORM(keys) FORM(make_keys)(const struct shuf__primefold *row)
{
    const shuf_primefold_shape *s = &row->plain.shape;
    struct FORM(keys) k;
    k.p = FORM(all)((WORD)s->p);
    k.whole = FORM(all)((WORD)s->whole);
    k.addend = FORM(all)((WORD)row->plain.addend);
    for (unsigned r = 0; r < s->maps; r++) {
        k.multiplier[r] = FORM(all)((WORD)row->plain.map[r].multiplier);
        k.quotient[r] = FORM(high_factor)((WORD)row->quotient[r]);
        k.fold[r] = FORM(all)((WORD)row->plain.map[r].fold);
    }
    return k;
}

/* x mod p, for x < 2 p. This is the smaller of x and x - p: if x < p, x - p wraps to a large
 * number. */
static inline FORM(vector) FORM(reduced)(const struct FORM(keys) * k, FORM(vector) x)
{
    return FORM(smaller)(x, FORM(subtract)(x, k->p));
}

/* x + y mod p */
static inline FORM(vector) FORM(sum)(const struct FORM(keys) * k, FORM(vector) x, FORM(vector) y)
{
    return FORM(reduced)(k, FORM(add)(x, y));
}

static inline FORM(vector) FORM(mapped)(const struct FORM(keys) * k, unsigned r, FORM(vector) x)
{
    FORM(vector) times = FORM(high_product)(x, k->quotient[r]);
    FORM(vector)
    rest = FORM(subtract)(FORM(low_product)(x, k->multiplier[r]), FORM(low_product)(times, k->p));
    return FORM(reduced)(k, rest);
}

/* x ^ x >> shift ^ x >> 2 shift ^ ... This undoes x ^ x >> shift. */
static inline __attribute__((always_inline)) FORM(vector) FORM(summed)(FORM(vector) x, int shift)
{
#pragma GCC unroll 6
    for (; shift < BITS; shift *= 2)
        x = FORM(xor)(x, FORM(right)(x, shift));
    return x;
}

#if BITS <= 32
static inline __attribute__((always_inline)) FORM(vector)
    FORM(folded_small)(const struct FORM(keys) * k, int shift, unsigned r, FORM(vector) x)
{
    const FORM(vector) free = FORM(below_top)(FORM(xor)(x, k->p));
    return FORM(xor_where)(x, FORM(right)(x, shift), k->fold[r], free);
}

static inline __attribute__((always_inline)) FORM(vector)
    FORM(unfolded_small)(const struct FORM(keys) * k, int shift, unsigned r, FORM(vector) x)
{
    const FORM(vector) free = FORM(below_top)(FORM(xor)(x, k->p)), kept = FORM(and_not)(x, free);
    const FORM(vector) above = FORM(right)(kept, shift);
    const FORM(vector) y = FORM(and)(FORM(xor)(FORM(xor)(x, above), k->fold[r]), free);
    return FORM(xor)(kept, FORM(summed)(y, shift));
}
#endif

#if BITS > 16
static inline __attribute__((always_inline)) FORM(vector)
    FORM(folded_large)(const struct FORM(keys) * k, int shift, unsigned r, FORM(vector) x)
{
    const FORM(vector) shifted = FORM(right)(x, shift);
    return FORM(xor_below)(x, shifted, k->fold[r], k->whole);
}

static inline __attribute__((always_inline)) FORM(vector)
    FORM(unfolded_large)(const struct FORM(keys) * k, int shift, unsigned r, FORM(vector) x)
{
    const FORM(vector) y = FORM(summed)(FORM(xor)(x, k->fold[r]), shift);
    return FORM(xor_below)(x, x, y, k->whole);
}
#endif
