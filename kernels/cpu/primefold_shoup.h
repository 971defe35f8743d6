/* SPDX-License-Identifier: MIT
 *
 * The maps and folds of `primefold` by Shoup's multiplication (primefold.h), in vectors
 * of words. No guard: included by primefold_form.h.
 */

/* A row's keys, each in all lanes; p < 2^(BITS - 1). */
struct FORM(keys) {
    FORM(vector) p, whole; /* values below `whole` stand in whole blocks, which are folded */
    FORM(shift) shift, shift_2, shift_4; /* the fold's, twice and four times of it */
    FORM(vector) multiplier[SHUF_PRIMEFOLD_MAPS], quotient[SHUF_PRIMEFOLD_MAPS];
    FORM(vector) addend[SHUF_PRIMEFOLD_MAPS], fold[SHUF_PRIMEFOLD_MAPS];
};

static inline struct FORM(keys) FORM(make_keys)(const struct shuf__primefold *row)
{
    const shuf_primefold_shape *s = &row->plain.shape;
    struct FORM(keys) k;
    k.p = FORM(all)((WORD)s->p);
    k.whole = FORM(all)((WORD)s->whole);
    k.shift = FORM(make_shift)(s->shift);
    k.shift_2 = FORM(make_shift)(2 * s->shift);
    k.shift_4 = FORM(make_shift)(4 * s->shift < s->bits ? 4 * s->shift : s->bits);
    for (unsigned r = 0; r < s->maps; r++) {
        k.multiplier[r] = FORM(all)((WORD)row->plain.map[r].multiplier);
        k.quotient[r] = FORM(all)((WORD)row->quotient[r]);
        k.addend[r] = FORM(all)((WORD)row->plain.map[r].addend);
        k.fold[r] = FORM(all)((WORD)row->plain.map[r].fold);
    }
    return k;
}

/* x < 2 p, reduced: below p the difference wraps around and is the larger one. */
static inline FORM(vector) FORM(reduced)(const struct FORM(keys) * k, FORM(vector) x)
{
    return FORM(smaller)(x, FORM(subtract)(x, k->p));
}

/* x + y mod p */
static inline FORM(vector) FORM(sum)(const struct FORM(keys) * k, FORM(vector) x, FORM(vector) y)
{
    return FORM(reduced)(k, FORM(add)(x, y));
}

static inline FORM(vector) FORM(affine)(const struct FORM(keys) * k, unsigned r, FORM(vector) x)
{
    FORM(vector) times = FORM(high_product)(x, k->quotient[r]);
    FORM(vector)
    rest = FORM(subtract)(FORM(low_product)(x, k->multiplier[r]), FORM(low_product)(times, k->p));
    return FORM(sum)(k, FORM(reduced)(k, rest), k->addend[r]);
}

static inline FORM(vector) FORM(folded)(const struct FORM(keys) * k, unsigned r, FORM(vector) x)
{
    return FORM(xor_below)(x, FORM(shifted)(x, k->shift), k->fold[r], k->whole);
}

/* More than eight parts of s bits there are never. */
static inline FORM(vector) FORM(unfolded)(const struct FORM(keys) * k, unsigned r, FORM(vector) x)
{
    FORM(vector) y = FORM(xor)(x, k->fold[r]);
    y = FORM(xor)(y, FORM(shifted)(y, k->shift));
    y = FORM(xor)(y, FORM(shifted)(y, k->shift_2));
    y = FORM(xor)(y, FORM(shifted)(y, k->shift_4));
    return FORM(xor_below)(x, x, y, k->whole);
}
