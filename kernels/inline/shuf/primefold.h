/* SPDX-License-Identifier: MIT
 *
 * `primefold`: multiplications modulo a prime p >= n, and between two of them a fold,
 * which exclusive-ors a value with itself shifted to the right by a few bits. After the
 * first multiplication a number is added.
 * Every value has a position and every position a value in a few multiplications,
 * whatever n is. docs/spec.md, "primefold".
 *
 * The first map is affine, with random coefficients: it takes any two values to any two
 * others equally likely, so what is done on [0, p) is pairwise independent by construction.
 * Its sign is that of its multiplier, so both parities are as likely. The folds
 * break what is linear. Below are the plain loops; the backends compute the same
 * in other words of the machine.
 *
 * Up to SHUF_PRIMEFOLD_EXACT values there would be too few maps to choose from:
 * there it is the shuffle of Fisher and Yates (Durstenfeld: "Algorithm 235", CACM
 * 7, 1964), one position or value at a time followed through its exchanges.
 */
#ifndef SHUF_PRIMEFOLD_H
#define SHUF_PRIMEFOLD_H

#include "inline.h"
#include "key.h"
#include "prime.h"

enum {
    SHUF_PRIMEFOLD_EXACT = 256,
    SHUF_PRIMEFOLD_SMALL = 65521,    /* the largest prime below 2^16, and the largest small n */
    SHUF_PRIMEFOLD_MEDIUM_BITS = 21, /* of n - 1, the most with the maps and folds of LARGE_21 */
    SHUF_PRIMEFOLD_TAIL = 1024,      /* a large n is rounded up where as many would not be folded */
    SHUF_PRIMEFOLD_MAPS = 10,        /* at most */
    SHUF_PRIMEFOLD_WORDS = 32,       /* of 32 bits, for the addend and the maps: blocks of 8 */
};

/* Numbers of multiplications, and shifts of a fold: SMALL_k where a small p has at most k bits,
 * LARGE_k where a large n - 1 has. */
enum {
    SHUF_PRIMEFOLD_SHIFT_SMALL = 2,
    SHUF_PRIMEFOLD_SHIFT_LARGE_21 = 6,
    SHUF_PRIMEFOLD_SHIFT_LARGE_62 = 8,
    SHUF_PRIMEFOLD_MAPS_SMALL_9 = 10,
    SHUF_PRIMEFOLD_MAPS_SMALL_10 = 9,
    SHUF_PRIMEFOLD_MAPS_SMALL_13 = 8,
    SHUF_PRIMEFOLD_MAPS_SMALL_16 = 7,
    SHUF_PRIMEFOLD_MAPS_LARGE_21 = 8,
    SHUF_PRIMEFOLD_MAPS_LARGE_62 = 7,
};

/* What n alone decides. */
typedef struct shuf_primefold_shape {
    uint64_t n, p;
    uint64_t whole; /* of large numbers, those below are folded: the whole blocks, not the tail */
    unsigned bits;  /* of p - 1 */
    unsigned shift; /* of a fold */
    unsigned maps;  /* multiplications, with a fold between each two; 0: exchanges */
} shuf_primefold_shape;

/* x -> multiplier * x mod p, then a fold with `fold` (after the last there is none) */
typedef struct shuf_primefold_map {
    uint64_t multiplier, fold;
} shuf_primefold_map;

typedef struct shuf_primefold {
    shuf_primefold_shape shape;
    uint64_t addend; /* added after the first multiplication, mod p */
    shuf_primefold_map map[SHUF_PRIMEFOLD_MAPS];
    uint64_t inverse[SHUF_PRIMEFOLD_MAPS];  /* of the multipliers, where requested */
    uint8_t exchange[SHUF_PRIMEFOLD_EXACT]; /* k changes places with exchange[k], k = 1, 2, ... */
} shuf_primefold;

static inline unsigned shuf__bits(uint64_t x)
{
    return x == 0 ? 0 : 64 - (unsigned)__builtin_clzll(x);
}

/* Whether p is small: then the block that p cuts short is folded too. */
SHUF_FUNCTION bool shuf_primefold_is_small(const shuf_primefold_shape *s)
{
    return s->p <= SHUF_PRIMEFOLD_SMALL;
}

static inline unsigned shuf__primefold_small_maps(unsigned bits)
{
    if (bits <= 9)
        return SHUF_PRIMEFOLD_MAPS_SMALL_9;
    if (bits <= 10)
        return SHUF_PRIMEFOLD_MAPS_SMALL_10;
    return bits <= 13 ? SHUF_PRIMEFOLD_MAPS_SMALL_13 : SHUF_PRIMEFOLD_MAPS_SMALL_16;
}

/* Sets p, and what p alone decides. `shift` is set. */
static inline void shuf__primefold_set_prime(shuf_primefold_shape *s, uint64_t p)
{
    s->p = p;
    s->bits = shuf__bits(p - 1);
    s->whole = p >> (s->bits - s->shift) << (s->bits - s->shift);
}

/* 1 <= n <= 2^62. Finds the prime: a few microseconds at most. */
static inline shuf_primefold_shape shuf_primefold_shape_of(uint64_t n)
{
    shuf_primefold_shape s = {n, 0, 0, 0, 0, 0};
    if (n <= SHUF_PRIMEFOLD_EXACT)
        return s;
    if (n <= SHUF_PRIMEFOLD_SMALL) {
        s.shift = SHUF_PRIMEFOLD_SHIFT_SMALL;
        shuf__primefold_set_prime(&s, shuf_prime_from(n));
        s.maps = shuf__primefold_small_maps(s.bits);
        return s;
    }
    const unsigned n_bits = shuf__bits(n - 1);
    const bool is_medium = n_bits <= SHUF_PRIMEFOLD_MEDIUM_BITS;
    s.maps = is_medium ? SHUF_PRIMEFOLD_MAPS_LARGE_21 : SHUF_PRIMEFOLD_MAPS_LARGE_62;
    s.shift = is_medium ? SHUF_PRIMEFOLD_SHIFT_LARGE_21 : SHUF_PRIMEFOLD_SHIFT_LARGE_62;
    shuf__primefold_set_prime(&s, shuf_prime_from(n));
    if (s.p - s.whole >= SHUF_PRIMEFOLD_TAIL) {
        const uint64_t block = UINT64_C(1) << (n_bits - s.shift);
        shuf__primefold_set_prime(&s, shuf_prime_from((n + block - 1) & -block));
    }
    return s;
}

/* Key words in blocks of 8: for the exchanges, or the addend and the maps. */
SHUF_FUNCTION unsigned shuf_primefold_key_blocks(const shuf_primefold_shape *s)
{
    if (s->maps == 0)
        return (unsigned)(s->n + 7) / 8;
    return ((shuf_primefold_is_small(s) ? 2 : 4) * s->maps + 7) / 8;
}

/* Where x < k + 1 stands for the word: an even share of 0 .. k. */
SHUF_FUNCTION uint8_t shuf_primefold_exchange(uint32_t word, unsigned k)
{
    return (uint8_t)((uint64_t)word * (k + 1) >> 32);
}

/* Key number i, whose words are `word`, of a row: 32 bits where p is small, else 64. */
SHUF_FUNCTION uint64_t shuf__primefold_key(const shuf_primefold_shape *s, const uint32_t *word,
                                           unsigned i)
{
    return shuf_primefold_is_small(s) ? word[i] : (uint64_t)word[2 * i + 1] << 32 | word[2 * i];
}

/* An even share of 0 .. below - 1 for a key. */
SHUF_FUNCTION uint64_t shuf__primefold_scaled(const shuf_primefold_shape *s, uint64_t key,
                                              uint64_t below)
{
    return shuf_primefold_is_small(s) ? (uint32_t)key * below >> 32 : shuf__mulhi64(key, below);
}

SHUF_FUNCTION uint64_t shuf_primefold_addend_of(const shuf_primefold_shape *s, const uint32_t *word)
{
    return shuf__primefold_scaled(s, shuf__primefold_key(s, word, 0), s->p);
}

/* Map number r of the row whose key words are `word`, as it is drawn. The last one has no fold. */
SHUF_FUNCTION shuf_primefold_map shuf_primefold_map_of(const shuf_primefold_shape *s,
                                                       const uint32_t *word, unsigned r)
{
    const uint64_t fold_mask = (UINT64_C(1) << (s->bits - s->shift)) - 1;
    shuf_primefold_map map = {
        1 + shuf__primefold_scaled(s, shuf__primefold_key(s, word, 2 * r + 1), s->p - 1), 0};
    if (r + 1 < s->maps)
        map.fold = shuf__primefold_key(s, word, 2 * r + 2) & fold_mask;
    return map;
}

/* Which of the multipliers are weak, a bit each: 2^k or -2^k modulo p, or the inverse of such a
 * number, 0 <= k < bits. A multiplication by it hardly mixes. */
SHUF_FUNCTION uint32_t shuf__primefold_weak(const shuf_primefold_shape *s,
                                            const shuf_primefold_map *map, unsigned maps)
{
    const uint64_t half = (s->p + 1) / 2;
    uint32_t weak = 0;
    for (unsigned r = 0; r < maps; r++) {
        const uint64_t m = map[r].multiplier, minus = s->p - m;
        weak |= (uint32_t)((m & (m - 1)) == 0 || (minus & (minus - 1)) == 0) << r;
    }
    uint64_t inverse = 1;
    for (unsigned k = 1; k < s->bits; k++) {
        inverse = inverse / 2 + (inverse & 1 ? half : 0);
        for (unsigned r = 0; r < maps; r++)
            weak |=
                (uint32_t)((map[r].multiplier == inverse) | (map[r].multiplier == s->p - inverse))
                << r;
    }
    return weak;
}

SHUF_FUNCTION uint64_t shuf__primefold_tripled(uint64_t x, uint64_t p)
{
    const uint64_t twice = x < p - x ? 2 * x : x - (p - x);
    return x < p - twice ? twice + x : x - (p - twice);
}

/* Weak multipliers of these maps are tripled until they are not weak. Not for the first map, which
 * has to take any two values anywhere. */
SHUF_FUNCTION void shuf_primefold_strengthen(const shuf_primefold_shape *s, shuf_primefold_map *map,
                                             unsigned maps)
{
    for (uint32_t weak; (weak = shuf__primefold_weak(s, map, maps)) != 0;)
        for (unsigned r = 0; r < maps; r++)
            if (weak >> r & 1)
                map[r].multiplier = shuf__primefold_tripled(map[r].multiplier, s->p);
}

/* For many keys of the same n, whose prime is then found once. */
static inline shuf_primefold shuf_primefold_make_of(const shuf_primefold_shape *shape,
                                                    uint64_t seed, uint64_t epoch)
{
    uint32_t word[SHUF_PRIMEFOLD_EXACT];
    shuf_primefold f;
    f.shape = *shape;
    unsigned block = 0;
    do
        shuf_key_words_for(shape->n, seed, epoch, SHUF_PURPOSE_PRIMEFOLD, block, word + 8 * block);
    while (++block < shuf_primefold_key_blocks(shape));
    f.addend = shape->maps > 0 ? shuf_primefold_addend_of(shape, word) : 0;
    for (unsigned r = 0; r < shape->maps; r++)
        f.map[r] = shuf_primefold_map_of(shape, word, r);
    if (shape->maps > 0)
        shuf_primefold_strengthen(shape, f.map + 1, shape->maps - 1);
    else
        for (unsigned k = 1; k < shape->n && k < SHUF_PRIMEFOLD_EXACT; k++)
            f.exchange[k] = shuf_primefold_exchange(word[k], k);
    return f;
}

static inline shuf_primefold shuf_primefold_make(uint64_t n, uint64_t seed, uint64_t epoch)
{
    const shuf_primefold_shape shape = shuf_primefold_shape_of(n);
    return shuf_primefold_make_of(&shape, seed, epoch);
}

/* What shuf_primefold_inverse() needs besides: b^(p - 2) is the inverse of b mod p. */
static inline void shuf_primefold_make_inverse(shuf_primefold *f)
{
    for (unsigned r = 0; r < f->shape.maps; r++) {
        uint64_t power = 1, base = f->map[r].multiplier;
        for (uint64_t e = f->shape.p - 2; e != 0; e >>= 1) {
            if (e & 1)
                power = shuf__multiply_mod(power, base, f->shape.p);
            base = shuf__multiply_mod(base, base, f->shape.p);
        }
        f->inverse[r] = power;
    }
}

/* The bits of x that a fold may change. Of small numbers those below the highest bit in which x
 * and p differ, where x has a 0 and p a 1: whatever these are, it stays so, and x below p. */
static inline uint64_t shuf__primefold_free(const shuf_primefold_shape *s, uint64_t x)
{
    if (shuf_primefold_is_small(s))
        return (UINT64_C(1) << (shuf__bits(x ^ s->p) - 1)) - 1;
    return x < s->whole ? UINT64_MAX : 0;
}

static inline uint64_t shuf_primefold_fold(const shuf_primefold *f, unsigned r, uint64_t x)
{
    return x ^ ((x >> f->shape.shift ^ f->map[r].fold) & shuf__primefold_free(&f->shape, x));
}

/* The uppermost bits stand as they were, and each part below is known from the one above it. */
static inline uint64_t shuf_primefold_unfold(const shuf_primefold *f, unsigned r, uint64_t x)
{
    const uint64_t bits = shuf__primefold_free(&f->shape, x), kept = x & ~bits;
    uint64_t y = (x ^ kept >> f->shape.shift ^ f->map[r].fold) & bits;
    for (unsigned shift = f->shape.shift; shift < f->shape.bits; shift *= 2)
        y ^= y >> shift;
    return kept | y;
}

static inline uint64_t shuf__primefold_exchanged(uint64_t x, uint64_t a, uint64_t b)
{
    return x == a ? b : x == b ? a : x;
}

/* The value at `position` < n. Thread-safe; a pure function. */
static inline uint64_t shuf_primefold_forward(const shuf_primefold *f, uint64_t position)
{
    const shuf_primefold_shape *s = &f->shape;
    uint64_t x = position;
    if (s->maps == 0) {
        for (unsigned k = 1; k < s->n && k < SHUF_PRIMEFOLD_EXACT; k++)
            x = shuf__primefold_exchanged(x, k, f->exchange[k]);
        return x;
    }
    do { /* p - n values are passed over: the cycle is walked on until one below n */
        for (unsigned r = 0; r < s->maps; r++) {
            const uint64_t add = r == 0 ? f->addend : 0;
            x = (uint64_t)(((shuf__u128)f->map[r].multiplier * x + add) % s->p);
            if (r + 1 < s->maps)
                x = shuf_primefold_fold(f, r, x);
        }
    } while (x >= s->n);
    return x;
}

/* The position of `value` < n, after shuf_primefold_make_inverse(). */
static inline uint64_t shuf_primefold_inverse(const shuf_primefold *f, uint64_t value)
{
    const shuf_primefold_shape *s = &f->shape;
    uint64_t x = value;
    if (s->maps == 0) {
        for (unsigned k = (unsigned)s->n - 1; k > 0 && s->n > 1; k--)
            x = shuf__primefold_exchanged(x, k, f->exchange[k]);
        return x;
    }
    do {
        for (unsigned r = s->maps; r-- > 0;) {
            if (r + 1 < s->maps)
                x = shuf_primefold_unfold(f, r, x);
            const uint64_t minus = r == 0 ? s->p - f->addend : 0; /* both are below 2^63 */
            x = shuf__multiply_mod((x + minus) % s->p, f->inverse[r], s->p);
        }
    } while (x >= s->n);
    return x;
}

#endif
