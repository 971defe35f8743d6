/* SPDX-License-Identifier: MIT
 *
 * Pairs of the stream box-muller f64 are products of a float radius and the cosine and sine of a
 * float angle. The program looks for a radius and an angle for each of many pairs of the stream,
 * which all have one, and for pairs of the normal law. The share of the latter gives the number of
 * values that show the stream by 6.5 standard deviations.
 *
 *     attack-reach               a second
 */
#include "shuf/box_muller.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { PAIRS = 100000 };

/* x, moved by some units of its last place. */
static double moved(double x, int units)
{
    return shuf__double_of_bits(shuf__double_bits(x) + (uint64_t)units);
}

static bool is_reached(const double pair[2])
{
    static const double sines[] = {SHUF_BOX_MULLER_SIN_F64}, cosines[] = {SHUF_BOX_MULLER_COS_F64};
    const double x = fmax(fabs(pair[0]), fabs(pair[1])), y = fmin(fabs(pair[0]), fabs(pair[1]));
    for (int i = -6; i <= 6; i++) {
        const double angle = moved(atan2(y, x) * 4 / M_PI, i), z = angle * angle;
        double sine = 0, cosine = 0;
        for (int j = sizeof sines / sizeof *sines; j-- > 0;)
            sine = fma(z, sine, sines[j]);
        for (int j = sizeof cosines / sizeof *cosines; j-- > 0;)
            cosine = fma(z, cosine, cosines[j]);
        for (int j = -2; j <= 2; j++) {
            const double radius = moved(x / cosine, j);
            if (cosine * radius == x && sine * angle * radius == y)
                return true;
        }
    }
    return false;
}

/* A uniform number with 96 random bits. */
static long double uniform(void)
{
    return drand48() + ldexpl(drand48() + 0x1p-49, -48);
}

int main(void)
{
    const shuf_box_muller stream = shuf_box_muller_make(7, 0, 0, 1);
    int own = 0, normal = 0;
    srand48(7);
    for (uint64_t i = 0; i < PAIRS; i++) {
        const long double r = sqrtl(-2 * logl(uniform())), angle = uniform() * 2 * M_PIl;
        own += is_reached((double[2]){shuf_box_muller_f64(&stream, 2 * i),
                                      shuf_box_muller_f64(&stream, 2 * i + 1)});
        normal += is_reached((double[2]){(double)(r * cosl(angle)), (double)(r * sinl(angle))});
    }
    printf("reached: %d of %d pairs of the stream, %d of the normal law; %.0f values\n", own, PAIRS,
           normal, 2 * 6.5 * 6.5 * normal / (PAIRS - normal));
    return 0;
}
