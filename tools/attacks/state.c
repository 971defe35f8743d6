/* SPDX-License-Identifier: MIT
 *
 * The Philox key and counter of a stream box-muller f64, from its values alone. Where the radius
 * and the angle of a pair are small fractions, the two values determine nearly all bits of the
 * draw's words after 9 rounds. Two bits of the words after 6 rounds are then known, too: the sign
 * of the sine, and whether sine and cosine are exchanged. state.h does the rest.
 */
#include "state.h"

#include "shuf/box_muller.h"

#include <math.h>

static const double SMALL = 0x1p53; /* a fraction of 2^63 below this is small */

enum { UNITS = 16 }; /* candidates on each side of the inverse, in units of the last place */

static shuf_box_muller_terms terms;

/* The words of a fraction that is x after rounding: the high word, and the low one behind it. */
static void set_words(double x, int high_bit, int low_bit, uint64_t word[2])
{
    word[0] = (uint64_t)x | (uint64_t)high_bit << 63;
    word[1] = (uint64_t)ldexp(x - floor(x), 63) | (uint64_t)low_bit << 63;
}

static double unit_of(double x)
{
    return ldexp(1, ilogb(x) - 52);
}

/* The fraction before rounding was up to half a unit less. So its high word may be less too. */
static void add_candidates(struct draw *d, double radius, double angle,
                           const shuf_box_muller_wide *w)
{
    for (int i = 0; i < 4; i++) {
        const uint64_t r = (uint64_t)(i % 2 ? nextafter(radius, 0) : radius);
        const uint64_t t = (uint64_t)(i / 2 ? nextafter(angle, 0) : angle);
        const uint64_t of_radius = r | w->radius[0] >> 63 << 63,
                       of_angle = t | w->angle[0] >> 63 << 63;
        add(d, &(struct candidate){
                   {(uint32_t)(of_radius >> 32), (uint32_t)of_radius, (uint32_t)(of_angle >> 32),
                    (uint32_t)of_angle},
                   {(uint32_t)(w->angle[1] >> 63) << 31, (uint32_t)(w->radius[1] >> 63) << 31}});
    }
}

/* Sets d to the words that can give the pair z. Returns whether there are few. */
static int invert(const double z[2], uint64_t index, struct draw *d)
{
    const int swap = fabs(z[0]) < fabs(z[1]);
    const double cosine = z[swap], sine = z[!swap];
    if (fabs(sine) > fabs(cosine) * 0x1p-9)
        return 0;
    const long double square = (long double)cosine * cosine + (long double)sine * sine;
    const int near_1 = square < logl(4);
    const long double chance = near_1 ? -expm1l(-square / 2) : expl(-square / 2);
    const double t = (double)ldexpl(atan2l(fabsl(sine), fabsl(cosine)) * 4 / acosl(-1), 63);
    const double r = (double)ldexpl(chance, 64);
    if (!(t < SMALL && r < SMALL && t > 1 && r > 1))
        return 0;
    *d = (struct draw){.index = index, .mask = {UINT32_C(1) << 31, UINT32_C(1) << 31}};
    const int width = near_1 ? UNITS : 16 * UNITS; /* the error grows with `square` */
    for (int i = -width; i <= width; i++)
        for (int j = -UNITS; j <= UNITS; j++) {
            const double radius = r + i * unit_of(r), angle = t + j * unit_of(t);
            shuf_box_muller_wide w;
            double made[2];
            set_words(radius, near_1, swap, w.radius);
            set_words(angle, cosine < 0, sine < 0, w.angle);
            shuf_box_muller_pair_f64(&terms, &w, made);
            if (made[0] == z[0] && made[1] == z[1])
                add_candidates(d, radius, angle, &w);
        }
    return d->candidates >= 1 && d->candidates <= WORDS;
}

int main(void)
{
    static struct draw draw[DRAWS];
    const shuf_box_muller b = shuf_box_muller_make(7, 0, 0, 1);
    unsigned draws = 0;
    terms = shuf_box_muller_terms_make();
#pragma omp parallel for schedule(static)
    for (uint64_t i = 0; i < UINT64_C(1) << 29; i++) {
        const shuf_stream_draw made = shuf_stream_draw_make(&b.words, i);
        const shuf_box_muller_wide words = shuf_box_muller_wide_of(&made);
        double z[2];
        struct draw d;
        shuf_box_muller_pair_f64(&terms, &words, z);
        if (!invert(z, i, &d))
            continue;
#pragma omp critical
        if (draws < DRAWS)
            draw[draws++] = d;
    }
    return find_state(draw, draws);
}
