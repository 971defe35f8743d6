/* SPDX-License-Identifier: MIT
 *
 * The loops of `primefold` with numbers of one size. No guard: lanes_primefold.c includes it
 * once for each size, with these set (and unset again here):
 *
 *   BITS, WORD, WIDER   16, uint16_t, uint32_t
 *   OUT                 what a value is stored as
 *
 * FORM(vector) holds FORM(LANES) numbers below p. FORM(affine) is a map, FORM(folded) a fold,
 * FORM(sum) an addition mod p, and FORM(keys) what they need to know of a row.
 */
#define FORM__(name, bits) name##_##bits
#define FORM_(name, bits) FORM__(name, bits)
#define FORM(name) FORM_(name, BITS)

#if BITS == 50
#include "primefold_double.h"
#else
#if BITS == 64 || !defined(__AVX2__)
#include "primefold_scalar.h"
#endif
#include "primefold_shoup.h"
#endif

/* The rest of a round after its first map. */
static inline __attribute__((always_inline)) FORM(vector)
    FORM(rounds)(const struct FORM(keys) * k, unsigned maps, FORM(vector) x)
{
#pragma GCC unroll 5
    for (unsigned r = 1; r < maps; r++)
        x = FORM(affine)(k, r, FORM(folded)(k, r - 1, x));
    return x;
}

/* ---- Walking: the p - n values that do not belong to the permutation, many side by side ---- */

struct FORM(walkers) {
    unsigned count;
    OUT *at[2 * BLOCK]; /* where each belongs */
    WORD x[2 * BLOCK];
};

static __attribute__((noinline)) void FORM(join)(struct FORM(walkers) * w, uint64_t which,
                                                 const OUT *values, OUT *out)
{
    for (; which != 0; which &= which - 1) {
        const int i = __builtin_ctzll(which);
        w->at[w->count] = out + i;
        w->x[w->count++] = (WORD)values[i];
    }
}

/* One round of all of them; those that have arrived leave. */
static void FORM(step)(const struct FORM(keys) * k, unsigned maps, OUT n, struct FORM(walkers) * w)
{
    OUT next[2 * BLOCK];
    unsigned left = 0;
    for (unsigned i = 0; i < w->count; i += FORM(LANES))
        FORM(store)(next + i, FORM(rounds)(k, maps, FORM(affine)(k, 0, FORM(load)(w->x + i))));
    for (unsigned i = 0; i < w->count; i++) {
        *w->at[i] = next[i];
        w->at[left] = w->at[i];
        w->x[left] = (WORD)next[i];
        left += next[i] >= n;
    }
    w->count = left;
}

static __attribute__((noinline)) void FORM(walk)(const struct shuf__primefold *row,
                                                 struct FORM(walkers) * w)
{
    const struct FORM(keys) k = FORM(make_keys)(row);
    while (w->count)
        FORM(step)(&k, row->plain.shape.maps, (OUT)row->plain.shape.n, w);
}

/* ---- All values ---- */

/* The first map over equally spaced positions is an addition: of `leap` from vector to vector. */
struct FORM(line) {
    FORM(vector) y, leap;
};

static inline struct FORM(line)
    FORM(first)(const struct shuf__primefold *row, WORD position, WORD stride)
{
    const shuf_primefold_map *map = &row->plain.map[0];
    const WORD p = (WORD)row->plain.shape.p, m = (WORD)map->multiplier;
    WORD y[FORM(LANES)], step = (WORD)((WIDER)m * stride % p);
    y[0] = (WORD)(((WIDER)m * position + (WORD)map->addend) % p);
    for (int have = 1; have < FORM(LANES); have *= 2) {
        for (int i = 0; i < have; i++) {
            WORD sum = (WORD)(y[i] + step);
            y[have + i] = sum < p ? sum : (WORD)(sum - p);
        }
        step = (WORD)(step < p - step ? 2 * step : step - (p - step));
    }
    return (struct FORM(line)){FORM(load)(y), FORM(all)(step)};
}

/* The next BLOCK values; whether any is n or more. */
static inline __attribute__((always_inline)) bool FORM(block)(const struct FORM(keys) * k,
                                                              unsigned maps, FORM(vector) n,
                                                              struct FORM(line) * line,
                                                              OUT *restrict out)
{
    FORM(vector) most = FORM(all)(0);
    for (int i = 0; i < BLOCK; i += FORM(LANES)) {
        FORM(vector) x = FORM(rounds)(k, maps, line->y);
        line->y = FORM(sum)(k, line->y, line->leap);
        most = FORM(larger)(most, x);
        FORM(store)(out + i, x);
    }
    return FORM(any_from)(most, n);
}

/* `maps`: the row's, as a constant. */
static inline __attribute__((always_inline)) void FORM(fill)(const struct shuf__primefold *row,
                                                             unsigned maps, WORD position,
                                                             WORD stride, OUT *restrict out,
                                                             size_t count)
{
    const OUT n = (OUT)row->plain.shape.n;
    const FORM(vector) n_in_all = FORM(all)((WORD)n);
    const struct FORM(keys) k = FORM(make_keys)(row);
    struct FORM(line) line = FORM(first)(row, position, stride);
    struct FORM(walkers) w = {.count = 0};
    for (; count >= BLOCK; count -= BLOCK, out += BLOCK) {
        if (FORM(block)(&k, maps, n_in_all, &line, out))
            FORM(join)(&w, FORM(which_from)(out, n), out, out);
        if (w.count > BLOCK)
            FORM(walk)(row, &w);
    }
    if (count) { /* beyond it may stand what would be walked on for ever */
        OUT last[BLOCK];
        FORM(block)(&k, maps, n_in_all, &line, last);
        memcpy(out, last, count * sizeof *out);
        FORM(join)(&w, FORM(which_from)(last, n) & ((UINT64_C(1) << count) - 1), last, out);
    }
    if (w.count)
        FORM(walk)(row, &w);
}

#undef FORM
#undef FORM_
#undef FORM__
#undef BITS
#undef WORD
#undef WIDER
#undef OUT
