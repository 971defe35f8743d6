/* SPDX-License-Identifier: MIT
 *
 * `primefold` computes the value at any position of a random permutation of [0, n), and the
 * position of any value. It alternates multiplications modulo a prime with shifts and exclusive
 * ors. docs/spec.md, "primefold", defines it and gives the reasons.
 *
 * p is a prime >= n. The code begins with x = position, and applies 7 to 10 maps, with a fold
 * between each two:
 *
 *     map     x = multiplier * x mod p          the first map also adds an addend, mod p
 *     fold    x = x ^ x >> shift ^ key          only in low bits, so that x stays below p
 *
 * If the result is n or more, the code applies all steps to it again (cycle walking). Every step
 * has an inverse, so the code also finds the position of a value.
 *
 * - *Pairs.* The first map is x -> a x + b mod p, with random a and b. It takes any two different
 *   numbers to any two different numbers with equal probability.
 * - *Parity.* A permutation is even or odd, like the number of exchanges that make it.
 *   Multiplication by m modulo p is even if m is a square modulo p, and else odd. Half of all m are
 *   squares, so even and odd permutations are equally likely.
 * - *Folds.* Without folds, all maps together would be a single map.
 *
 * For n <= SHUF_PRIMEFOLD_EXACT a prime allows too few different maps. `primefold` is then the
 * shuffle of Fisher and Yates (Durstenfeld: "Algorithm 235", CACM 7, 1964): n - 1 random exchanges.
 * The code follows one position or value through all exchanges.
 *
 * This file has plain loops. The backends compute the same values in machine words of other sizes.
 */
#ifndef SHUF_PRIMEFOLD_H
#define SHUF_PRIMEFOLD_H

#include "inline.h"
#include "key.h"
#include "prime.h"

enum {
    SHUF_PRIMEFOLD_EXACT = 256,
    SHUF_PRIMEFOLD_SMALL = 65521,    /* the largest prime below 2^16, and the largest small n */
    SHUF_PRIMEFOLD_MEDIUM_BITS = 21, /* the most bits of n - 1 for LARGE_21 */
    SHUF_PRIMEFOLD_TAIL = 1024,      /* if folds leave out so many numbers, p is made larger */
    SHUF_PRIMEFOLD_MAPS = 10,        /* at most */
    SHUF_PRIMEFOLD_WORDS = 32,       /* 32-bit key words for all maps, at most */
};

/* The number of maps, and the shift of a fold. SMALL_k is for a small n whose p - 1 has at most k
 * bits. LARGE_k is for a large n whose n - 1 has at most k bits. */
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

/* The parameters that depend on n alone. */
typedef struct shuf_primefold_shape {
    uint64_t n, p;
    uint64_t whole; /* for a large p, folds change only numbers below `whole` */
    unsigned bits;  /* of p - 1 */
    unsigned shift; /* shift of a fold */
    unsigned maps;  /* number of multiplications; 0: exchanges */
} shuf_primefold_shape;

/* The map x -> multiplier * x mod p, and the key of the fold after it. The last map has no fold. */
typedef struct shuf_primefold_map {
    uint64_t multiplier, fold;
} shuf_primefold_map;

typedef struct shuf_primefold {
    shuf_primefold_shape shape;
    uint64_t addend; /* added after the first multiplication, mod p */
    shuf_primefold_map map[SHUF_PRIMEFOLD_MAPS];
    /* multiplier^-1 mod p; [0] is 0 before shuf_primefold_make_inverse() */
    uint64_t inverse[SHUF_PRIMEFOLD_MAPS];
    uint8_t exchange[SHUF_PRIMEFOLD_EXACT]; /* elements k and exchange[k] change places */
} shuf_primefold;

static inline unsigned shuf__bits(uint64_t x)
{
    return x == 0 ? 0 : 64 - (unsigned)__builtin_clzll(x);
}

/* Whether p is small. For a small p, folds also change the numbers from `whole` to p - 1. */
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

/* Sets p, and the fields that p decides. `shift` must be set. */
static inline void shuf__primefold_set_prime(shuf_primefold_shape *s, uint64_t p)
{
    s->p = p;
    s->bits = shuf__bits(p - 1);
    s->whole = p >> (s->bits - s->shift) << (s->bits - s->shift);
}

/* Finds the prime and the parameters for n, 1 <= n <= 2^62. Usually this takes a
 * few microseconds; if the next prime is far from n, up to 100 us. */
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

/* The number of blocks of 8 key words: for all exchanges, or for the addend and all maps. */
SHUF_FUNCTION unsigned shuf_primefold_key_blocks(const shuf_primefold_shape *s)
{
    if (s->maps == 0)
        return (unsigned)(s->n + 7) / 8;
    return ((shuf_primefold_is_small(s) ? 2 : 4) * s->maps + 7) / 8;
}

/* The partner of k in its exchange: the word scaled to 0 .. k. */
SHUF_FUNCTION uint8_t shuf_primefold_exchange(uint32_t word, unsigned k)
{
    return (uint8_t)((uint64_t)word * (k + 1) >> 32);
}

/* Key number i of the row with key words `word`: 32 bits if p is small, else 64. */
SHUF_FUNCTION uint64_t shuf__primefold_key(const shuf_primefold_shape *s, const uint32_t *word,
                                           unsigned i)
{
    return shuf_primefold_is_small(s) ? word[i] : (uint64_t)word[2 * i + 1] << 32 | word[2 * i];
}

/* The key scaled to 0 .. below - 1. */
SHUF_FUNCTION uint64_t shuf__primefold_scaled(const shuf_primefold_shape *s, uint64_t key,
                                              uint64_t below)
{
    return shuf_primefold_is_small(s) ? (uint32_t)key * below >> 32 : shuf__mulhi64(key, below);
}

SHUF_FUNCTION uint64_t shuf_primefold_addend_of(const shuf_primefold_shape *s, const uint32_t *word)
{
    return shuf__primefold_scaled(s, shuf__primefold_key(s, word, 0), s->p);
}

/* Map number r of the row with key words `word`, before weak multipliers are replaced. The last map
 * has no fold. */
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

/* Bit r is set if the multiplier of map r is weak. m is weak if m or its inverse is 2^k or -2^k
 * modulo p, with 0 <= k < bits. Such a multiplier shifts the bits of a number and mixes them
 * little. */
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

/* Multiplies each weak multiplier by 3 modulo p until it is not weak. The caller leaves out the
 * first map, whose multiplier must be uniformly random. */
SHUF_FUNCTION void shuf_primefold_strengthen(const shuf_primefold_shape *s, shuf_primefold_map *map,
                                             unsigned maps)
{
    for (uint32_t weak; (weak = shuf__primefold_weak(s, map, maps)) != 0;)
        for (unsigned r = 0; r < maps; r++)
            if (weak >> r & 1)
                map[r].multiplier = shuf__primefold_tripled(map[r].multiplier, s->p);
}

/* Makes the keys of one permutation. The caller has found the shape, with its prime, once for all
 * permutations of n. */
static inline shuf_primefold shuf_primefold_make_of(const shuf_primefold_shape *shape, shuf_key key,
                                                    uint64_t epoch)
{
    uint32_t word[SHUF_PRIMEFOLD_EXACT];
    shuf_primefold f;
    f.shape = *shape;
    f.inverse[0] = 0;
    unsigned block = 0;
    do
        shuf_key_words_for(shape->n, key, epoch, SHUF_PURPOSE_PRIMEFOLD, block, word + 8 * block);
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

static inline shuf_primefold shuf_primefold_make_keyed(uint64_t n, shuf_key key, uint64_t epoch)
{
    const shuf_primefold_shape shape = shuf_primefold_shape_of(n);
    return shuf_primefold_make_of(&shape, key, epoch);
}

static inline shuf_primefold shuf_primefold_make(uint64_t n, uint64_t seed, uint64_t epoch)
{
    return shuf_primefold_make_keyed(n, shuf_key_of_seed(seed), epoch);
}

/* Makes the inverses for shuf_primefold_inverse(): b^-1 = b^(p - 2) mod p. */
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

/* A mask of the bits of x that a fold may change. For a small p these are the bits below the
 * highest bit in which x and p differ. In that bit x has a 0 and p has a 1, so x stays below p
 * whatever its lower bits become. */
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

/* Undoes a fold. The fold has kept the uppermost bits. Each lower group of `shift` bits follows
 * from the group above it. */
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
    do { /* cycle walking skips the p - n values from n to p - 1 */
        for (unsigned r = 0; r < s->maps; r++) {
            const uint64_t add = r == 0 ? f->addend : 0;
            x = (uint64_t)(((shuf__u128)f->map[r].multiplier * x + add) % s->p);
            if (r + 1 < s->maps)
                x = shuf_primefold_fold(f, r, x);
        }
    } while (x >= s->n);
    return x;
}

static inline uint64_t shuf__primefold_inverted(const shuf_primefold *f, uint64_t value)
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

/* The position of `value` < n. Thread-safe; a pure function. Call shuf_primefold_make_inverse()
 * once before: otherwise each call makes the inverses again, which takes much longer. */
static inline uint64_t shuf_primefold_inverse(const shuf_primefold *f, uint64_t value)
{
    if (f->shape.maps == 0 || f->inverse[0] != 0)
        return shuf__primefold_inverted(f, value);
    shuf_primefold g = *f;
    shuf_primefold_make_inverse(&g);
    return shuf__primefold_inverted(&g, value);
}

#endif
