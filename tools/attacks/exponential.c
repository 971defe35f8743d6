/* SPDX-License-Identifier: MIT
 *
 * The Philox key and counter of an exponential stream f64 of mean 1, from its values alone. A value
 * below 2^-11 has all bits of its two words after 9 rounds, but hardly more, and a smaller one also
 * the first bits of a word after 6 rounds. state.h does the rest.
 */
#include "state.h"

#include "shuf/exponential.h"

#include <math.h>

static const double LEAST = 0x1p-41, SMALL = 0x1p-11; /* values between them are inverted */

enum {
    UNITS = 3, /* candidates on each side of the inverse, in units of the last place */
    MOST = 4,  /* of one value */
    EARLY = 31 /* bits of an early word in the low fraction */
};

static shuf_box_muller_terms terms;

/* The candidates for a value: the words of its high fraction, and the first bits of the low one. */
struct fractions {
    unsigned count;
    uint64_t high[MOST], low[MOST];
    int bits; /* of low */
};

static void add_fraction(struct fractions *f, uint64_t bits)
{
    const uint64_t high = bits >> f->bits | UINT64_C(1) << 63;
    const uint64_t low = bits & ((UINT64_C(1) << f->bits) - 1);
    unsigned k = 0;
    while (k < f->count && (f->high[k % MOST] != high || f->low[k % MOST] != low))
        k++;
    if (k < f->count)
        return;
    f->high[k % MOST] = high;
    f->low[k % MOST] = low;
    f->count++;
}

/* Sets f to the fractions that can give y. Returns whether there are few. The fraction before
 * rounding was up to half a unit less or more. */
static int invert(double y, struct fractions *f)
{
    if (!(LEAST < y && y < SMALL))
        return 0;
    const double x = (double)ldexpl(-expm1l(-(long double)y), 64);
    *f = (struct fractions){.bits = 52 - ilogb(x)};
    for (int i = -UNITS; i <= UNITS; i++) {
        const double near = x + ldexp(i, -f->bits);
        const uint64_t word[] = {(uint64_t)near | UINT64_C(1) << 63,
                                 (uint64_t)ldexp(near - floor(near), 63)};
        if (shuf_box_muller_log_f64(&terms, word) * 0.5 != y)
            continue;
        add_fraction(f, (uint64_t)ldexp(near, f->bits));
        add_fraction(f, (uint64_t)ldexp(near, f->bits) - 1);
    }
    return f->count >= 1 && f->count <= MOST;
}

static uint32_t mask_of(const struct fractions *f)
{
    return (uint32_t)(((UINT64_C(1) << f->bits) - 1) << (EARLY - f->bits));
}

/* Sets d to the words that can give two values. Returns whether there are few. Early word 2 belongs
 * to the second value, and early word 0 to the first. */
static int invert_both(const double y[2], uint64_t index, struct draw *d)
{
    struct fractions a, b;
    if (!invert(y[0], &a) || !invert(y[1], &b))
        return 0;
    *d = (struct draw){.index = index, .mask = {mask_of(&b), mask_of(&a)}};
    for (unsigned i = 0; i < a.count; i++)
        for (unsigned j = 0; j < b.count; j++)
            add(d, &(struct candidate){{(uint32_t)(a.high[i] >> 32), (uint32_t)a.high[i],
                                        (uint32_t)(b.high[j] >> 32), (uint32_t)b.high[j]},
                                       {(uint32_t)(b.low[j] << (EARLY - b.bits)),
                                        (uint32_t)(a.low[i] << (EARLY - a.bits))}});
    return d->candidates <= WORDS;
}

int main(void)
{
    static struct draw draw[DRAWS];
    const shuf_exponential e = shuf_exponential_make(7, 0, 1);
    unsigned draws = 0;
    terms = shuf_box_muller_terms_make();
#pragma omp parallel for schedule(static)
    for (uint64_t i = 0; i < UINT64_C(1) << 29; i++) {
        const shuf_stream_draw made = shuf_stream_draw_make(&e.words, i);
        const double y[] = {shuf_exponential_f64_of(&terms, e.half, &made, 0),
                            shuf_exponential_f64_of(&terms, e.half, &made, 1)};
        struct draw d;
        if (!invert_both(y, i, &d))
            continue;
#pragma omp critical
        if (draws < DRAWS)
            draw[draws++] = d;
    }
    return find_state(draw, draws);
}
