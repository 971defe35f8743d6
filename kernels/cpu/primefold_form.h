/* SPDX-License-Identifier: MIT
 *
 * The loops of `primefold` in words of one size, plain C that the compiler
 * vectorises where the machine multiplies such words. No guard: lanes_primefold.c
 * includes it once for each size, with these set (and unset again here):
 *
 *   BITS, WORD, SIGNED, WIDER   16, uint16_t, int16_t, uint32_t
 *   OUT                         what a value is stored as
 */
#define FORM__(name, bits) name##_##bits
#define FORM_(name, bits) FORM__(name, bits)
#define FORM(name) FORM_(name, BITS)

/* A row's keys; p < 2^(BITS - 1). */
struct FORM(keys) {
    WORD n, p, whole; /* values below `whole` stand in whole blocks, which are folded */
    unsigned fold_bits, maps;
    WORD multiplier[SHUF_PRIMEFOLD_MAPS], quotient[SHUF_PRIMEFOLD_MAPS];
    WORD addend[SHUF_PRIMEFOLD_MAPS], fold[SHUF_PRIMEFOLD_MAPS];
};

static inline struct FORM(keys) FORM(make_keys)(const struct shuf__primefold *row)
{
    const shuf_primefold_shape *s = &row->plain.shape;
    struct FORM(keys) k = {.n = (WORD)s->n, .p = (WORD)s->p, .fold_bits = s->fold_bits};
    k.whole = (WORD)(s->blocks << s->fold_bits);
    k.maps = s->maps;
    for (unsigned r = 0; r < SHUF_PRIMEFOLD_MAPS && r < s->maps; r++) {
        k.multiplier[r] = (WORD)row->plain.map[r].multiplier;
        k.quotient[r] = (WORD)row->quotient[r];
        k.addend[r] = (WORD)row->plain.map[r].addend;
        k.fold[r] = (WORD)row->plain.map[r].fold;
    }
    return k;
}

/* x < 2 p, reduced: below p the difference wraps around and is the larger one. */
static inline WORD FORM(reduced)(WORD x, WORD p)
{
    WORD less = (WORD)(x - p);
    return x < less ? x : less;
}

static inline WORD FORM(multiplied)(const struct FORM(keys) * k, unsigned r, WORD x)
{
    WORD times = (WORD)((WIDER)x * k->quotient[r] >> BITS);
    WORD rest = (WORD)((WORD)((WIDER)x * k->multiplier[r]) - (WORD)((WIDER)times * k->p));
    return FORM(reduced)(rest, k->p);
}

static inline WORD FORM(affine)(const struct FORM(keys) * k, unsigned r, WORD x)
{
    return FORM(reduced)((WORD)(FORM(multiplied)(k, r, x) + k->addend[r]), k->p);
}

/* Compared as signed numbers, since that is what AVX2 can. */
static inline WORD FORM(folded)(const struct FORM(keys) * k, unsigned r, WORD x)
{
    WORD turn = (WORD)(x >> k->fold_bits ^ k->fold[r]);
    return (WORD)(x ^ ((SIGNED)x < (SIGNED)k->whole ? turn : 0));
}

/* The rest of a round after its first map. */
static inline __attribute__((always_inline)) WORD FORM(rounds)(const struct FORM(keys) * k,
                                                               unsigned maps, WORD x)
{
#pragma GCC unroll 5
    for (unsigned r = 1; r < maps; r++)
        x = FORM(affine)(k, r, FORM(folded)(k, r - 1, x));
    return x;
}

/* The p - n values that do not belong to the permutation are walked on, in a block that has any. */
static __attribute__((noinline)) void FORM(walk)(const struct FORM(keys) * k, OUT *values,
                                                 size_t count)
{
    for (size_t i = 0; i < count; i++) {
        WORD x = (WORD)values[i];
        while (x >= k->n)
            x = FORM(rounds)(k, k->maps, FORM(affine)(k, 0, x));
        values[i] = x;
    }
}

/* out[i], i < BLOCK, from the first map's y + ahead[i]; the largest of them. */
static inline __attribute__((always_inline)) WORD FORM(block)(const struct FORM(keys) * k,
                                                              unsigned maps, WORD y,
                                                              const WORD *restrict ahead,
                                                              OUT *restrict out)
{
    WORD most = 0;
    for (int i = 0; i < BLOCK; i++) {
        WORD x = FORM(rounds)(k, maps, FORM(reduced)((WORD)(y + ahead[i]), k->p));
        most = x > most ? x : most;
        out[i] = x;
    }
    return most;
}

/* ahead[i]: what the first map adds over i strides. Returns that of BLOCK strides. */
static inline WORD FORM(look_ahead)(const struct FORM(keys) * k, WORD stride, WORD ahead[BLOCK])
{
    WORD step = FORM(multiplied)(k, 0, stride);
    ahead[0] = 0;
    for (int have = 1; have < BLOCK; have *= 2) {
        for (int i = 0; i < have; i++)
            ahead[have + i] = FORM(reduced)((WORD)(ahead[i] + step), k->p);
        step = FORM(reduced)((WORD)(step + step), k->p);
    }
    return step;
}

/* `maps`: k->maps, as a constant. */
static inline __attribute__((always_inline)) void FORM(fill)(const struct FORM(keys) * k,
                                                             unsigned maps, WORD position,
                                                             WORD stride, OUT *restrict out,
                                                             size_t count)
{
    WORD ahead[BLOCK], y = FORM(affine)(k, 0, position);
    const WORD leap = FORM(look_ahead)(k, stride, ahead);
    for (; count >= BLOCK; count -= BLOCK, out += BLOCK) {
        if (FORM(block)(k, maps, y, ahead, out) >= k->n)
            FORM(walk)(k, out, BLOCK);
        y = FORM(reduced)((WORD)(y + leap), k->p);
    }
    if (count) { /* beyond it may stand what would be walked on for ever */
        OUT last[BLOCK];
        FORM(block)(k, maps, y, ahead, last);
        memcpy(out, last, count * sizeof *out);
        FORM(walk)(k, out, count);
    }
}

#undef FORM
#undef FORM_
#undef FORM__
#undef BITS
#undef WORD
#undef SIGNED
#undef WIDER
#undef OUT
