/* SPDX-License-Identifier: MIT
 *
 * The loops of `primefold` with numbers of one size. No guard: lanes_primefold.c includes it
 * once for each size, with these set (and unset again here):
 *
 *   BITS, WORD, WIDER   16, uint16_t, uint32_t
 *   OUT                 what a value is stored as
 *
 * FORM(vector) holds FORM(LANES) numbers below p. FORM(mapped) is a multiplication,
 * FORM(folded_small) and FORM(folded_large) a fold, FORM(unfolded_small) and FORM(unfolded_large)
 * undo one, FORM(sum) is an addition mod p, and FORM(keys) what they need to know of a row.
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

enum {
    FORM(UNIT) = GROUP * FORM(LANES),                /* computed at once */
    FORM(WHOLE) = FORM(UNIT) > 64 ? FORM(UNIT) : 64, /* looked through at once, a bit each */
};

/* A fold, or what undoes it. The shortest words hold small numbers only, the widest none. */
static inline __attribute__((always_inline)) FORM(vector)
    FORM(turned)(const struct FORM(keys) * k, struct form form, unsigned r, FORM(vector) x)
{
#if BITS <= 32
    if (BITS == 16 || form.small)
        return form.backward ? FORM(unfolded_small)(k, form.shift, r, x)
                             : FORM(folded_small)(k, form.shift, r, x);
#endif
#if BITS > 16
    return form.backward ? FORM(unfolded_large)(k, form.shift, r, x)
                         : FORM(folded_large)(k, form.shift, r, x);
#endif
}

/* The first map. The addend is the first map's, backward the last one's. */
static inline __attribute__((always_inline)) FORM(vector)
    FORM(start)(const struct FORM(keys) * k, struct form form, FORM(vector) x)
{
    x = FORM(mapped)(k, 0, x);
    return form.backward ? x : FORM(sum)(k, x, k->addend);
}

/* The rest of a round after its first map. Vectors side by side: each step waits for the one before
 * it, and a processor does not look ahead as far as a vector's last. */
static inline __attribute__((always_inline)) void
FORM(rounds)(const struct FORM(keys) * k, struct form form, FORM(vector) x[GROUP])
{
#pragma GCC unroll 10
    for (unsigned r = 1; r < form.maps; r++)
#pragma GCC unroll 4
        for (int i = 0; i < GROUP; i++)
            x[i] = FORM(mapped)(k, r, FORM(turned)(k, form, r - 1, x[i]));
    if (form.backward)
#pragma GCC unroll 4
        for (int i = 0; i < GROUP; i++)
            x[i] = FORM(sum)(k, x[i], k->addend);
}

/* ---- Walking: the p - n values that do not belong to the permutation, many side by side ---- */

struct FORM(walkers) {
    size_t count;
    OUT *at[2 * BLOCK + 1]; /* one more than join() counts may be written to */
};

/* Those of n and more; `values` are read in whole 64s. Two of 64 without a branch, as it would be
 * hard to predict. */
static __attribute__((noinline)) void FORM(join)(struct FORM(walkers) * w, OUT n, const OUT *values,
                                                 size_t count, OUT *out)
{
    size_t joined = w->count;
    for (size_t i = 0; i < count; i += 64) {
        uint64_t which = FORM(which_from)(values + i, n);
        which &= count - i < 64 ? (UINT64_C(1) << (count - i)) - 1 : UINT64_MAX;
        for (int times = 0; times < 2 || which != 0; times++) {
            w->at[joined] = out + i + __builtin_ctzll(which | UINT64_C(1) << 63);
            joined += which != 0;
            which &= which - 1;
        }
    }
    w->count = joined;
}

/* One round of all of them; those that have arrived leave. */
static inline __attribute__((always_inline)) void
FORM(step)(const struct FORM(keys) * k, OUT n, struct form form, struct FORM(walkers) * w)
{
    WORD x[2 * BLOCK];
    OUT next[2 * BLOCK];
    size_t left = 0;
    for (size_t i = 0; i < w->count; i++)
        x[i] = (WORD)*w->at[i];
    for (size_t i = w->count; i % FORM(UNIT) != 0; i++)
        x[i] = 0;
    for (size_t i = 0; i < w->count; i += FORM(UNIT)) {
        FORM(vector) group[GROUP];
        for (int g = 0; g < GROUP; g++)
            group[g] = FORM(start)(k, form, FORM(load)(x + i + g * FORM(LANES)));
        FORM(rounds)(k, form, group);
        for (int g = 0; g < GROUP; g++)
            FORM(store)(next + i + g * FORM(LANES), group[g]);
    }
    for (size_t i = 0; i < w->count; i++) {
        OUT *at = w->at[i];
        *at = next[i];
        w->at[left] = at;
        left += next[i] >= n;
    }
    w->count = left;
}

static __attribute__((noinline)) void FORM(walk)(const struct shuf__primefold *row,
                                                 struct FORM(walkers) * w)
{
    const struct FORM(keys) k = FORM(make_keys)(row);
    const struct form form = form_of(row);
    while (w->count)
        FORM(step)(&k, (OUT)row->plain.shape.n, form, w);
}

/* ---- All values ---- */

/* The first map over equally spaced positions is an addition: of `leap` from vector to vector. */
struct FORM(line) {
    FORM(vector) y, leap;
};

static inline struct FORM(line)
    FORM(first)(const struct shuf__primefold *row, WORD position, WORD stride)
{
    const WORD p = (WORD)row->plain.shape.p, m = (WORD)row->plain.map[0].multiplier;
    const WORD addend = row->backward ? 0 : (WORD)row->plain.addend;
    WORD y[FORM(LANES)], step = (WORD)((WIDER)m * stride % p);
    y[0] = (WORD)(((WIDER)m * position + addend) % p);
    for (int have = 1; have < FORM(LANES); have *= 2) {
        for (int i = 0; i < have; i++) {
            WORD sum = (WORD)(y[i] + step);
            y[have + i] = sum < p ? sum : (WORD)(sum - p);
        }
        step = (WORD)(step < p - step ? 2 * step : step - (p - step));
    }
    return (struct FORM(line)){FORM(load)(y), FORM(all)(step)};
}

/* The next values, `count` rounded up to whole units; whether any is n or more. */
static inline __attribute__((always_inline)) bool FORM(block)(const struct FORM(keys) * k,
                                                              struct form form, FORM(vector) n,
                                                              struct FORM(line) * line,
                                                              OUT *restrict out, size_t count)
{
    FORM(vector) most = FORM(all)(0);
    for (size_t i = 0; i < count; i += FORM(UNIT)) {
        FORM(vector) x[GROUP];
#pragma GCC unroll 4
        for (int g = 0; g < GROUP; g++) {
            x[g] = line->y;
            line->y = FORM(sum)(k, line->y, line->leap);
        }
        FORM(rounds)(k, form, x);
#pragma GCC unroll 4
        for (int g = 0; g < GROUP; g++) {
            most = FORM(larger)(most, x[g]);
            FORM(store)(out + i + g * FORM(LANES), x[g]);
        }
    }
    return FORM(any_from)(most, n);
}

/* `form`: the row's, as constants. */
static inline __attribute__((always_inline)) void FORM(fill)(const struct shuf__primefold *row,
                                                             struct form form, WORD position,
                                                             WORD stride, OUT *restrict out,
                                                             size_t count)
{
    const OUT n = (OUT)row->plain.shape.n;
    const FORM(vector) n_in_all = FORM(all)((WORD)n);
    const struct FORM(keys) k = FORM(make_keys)(row);
    struct FORM(line) line = FORM(first)(row, position, stride);
    struct FORM(walkers) w = {.count = 0};
    while (count >= FORM(WHOLE)) {
        const size_t some = (count < BLOCK ? count : BLOCK) / FORM(WHOLE) * FORM(WHOLE);
        if (FORM(block)(&k, form, n_in_all, &line, out, some))
            FORM(join)(&w, n, out, some, out);
        if (w.count > BLOCK)
            FORM(walk)(row, &w);
        count -= some;
        out += some;
    }
    if (count) { /* beyond it may stand what would be walked on for ever */
        OUT last[BLOCK] = {0};
        const bool any = FORM(block)(&k, form, n_in_all, &line, last, count);
        memcpy(out, last, count * sizeof *out);
        if (any)
            FORM(join)(&w, n, last, count, out);
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
