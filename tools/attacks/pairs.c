/* SPDX-License-Identifier: MIT
 *
 * The law of pairs of the stream box-muller f32, at random pairs of floats (X, Y) with X > Y > 0.
 * The program goes through all radii and angles that reach a pair, with their probabilities. It
 * compares the probability of the pair with the normal law, and prints the relative difference. The
 * mean square of many gives the number of pairs that show it by 6.5 standard deviations.
 *
 *     attack-pairs [POINTS]      by default 24; ten seconds each with one thread
 *
 * The words that spread a pair are taken as real numbers, and ties of roundings are left out. Y is
 * 0.05 or more, and the radius 0.13 to 3.2, so that the radius and the angle come from words of
 * 2^24 or more.
 */
#include "shuf/box_muller.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { WORD = 31, LEAST = 24, MOST = 1 << 20 };

static const double small = 0x1p-11; /* turn and grow lie between -small and small */

struct angle {
    double cosine, sine, chance;
};

struct radius {
    double radius, chance;
};

static struct angle angles[MOST];
static struct radius radii[MOST];
static unsigned angle_count, radius_count;

struct interval {
    double low, high;
};

static double width_of(struct interval a)
{
    return a.high > a.low ? a.high - a.low : 0;
}

static struct interval both(struct interval a, struct interval b)
{
    return (struct interval){fmax(a.low, b.low), fmin(a.high, b.high)};
}

/* The numbers that are rounded to this float. */
static struct interval rounded_to(double x)
{
    const double half = ldexp(1, ilogb(x) - 24);
    return (struct interval){x - half, x + half};
}

/* The f for which y (1 + f) lies in the interval. */
static struct interval factors(struct interval to, double y)
{
    return (struct interval){(to.low - y) / y, (to.high - y) / y};
}

/* ---- All angles and radii near a pair ---- */

/* Calls `add` for each float that a word of 31 bits is rounded to, with its probability. */
static void each_word(void (*add)(uint32_t word, double chance, const double *near),
                      const double *near)
{
    for (float x = ldexpf(1, LEAST); x < ldexpf(1, WORD);
         x = shuf__float_of_bits(shuf__float_bits(x) + 1))
        add((uint32_t)x, ldexp(1, ilogbf(x) - 23 - WORD), near);
}

static void add_angle(uint32_t word, double chance, const double *near)
{
    float pair[2];
    shuf_box_muller_angle_f32((uint32_t[2]){word, 0}, pair);
    if (fabs(pair[1] * near[0] / (pair[0] * near[1]) - 1) < 1.01 * small && angle_count < MOST)
        angles[angle_count++] = (struct angle){pair[0], pair[1], chance};
}

static void add_radius(uint32_t word, double chance, const double *near)
{
    for (uint32_t near_1 = 0; near_1 < 2; near_1++) {
        const double r = shuf_box_muller_radius_f32((uint32_t[2]){word | near_1 << WORD, 0});
        if (fabs(r / hypot(near[0], near[1]) - 1) < 3 * small && radius_count < MOST)
            radii[radius_count++] = (struct radius){r, chance / 2};
    }
}

/* ---- The probability of a pair ---- */

/* The probability that this angle and radius, turned and grown, give the pair. */
static double chance_of(const struct angle *a, const struct radius *r, struct interval of_x,
                        struct interval of_y)
{
    const double x = (float)(a->cosine * r->radius), y = (float)(a->sine * r->radius);
    const struct interval all = {-small, small}, grow = both(factors(of_x, x), all);
    if (grow.high <= grow.low)
        return 0;
    const double middle = (grow.low + grow.high) / 2;
    const struct interval sum = factors(of_y, y);
    const struct interval turn = {sum.low - middle, sum.high - middle};
    return a->chance * r->chance * width_of(grow) * width_of(both(turn, all)) / (4 * small * small);
}

/* The relative difference from the normal law. */
static double judge(const double near[2])
{
    const struct interval x = rounded_to((float)near[0]), y = rounded_to((float)near[1]);
    const double density = 8 * exp(-(near[0] * near[0] + near[1] * near[1]) / 2) / (2 * M_PI);
    double chance = 0;
    angle_count = radius_count = 0;
    each_word(add_angle, near);
    each_word(add_radius, near);
#pragma omp parallel for schedule(dynamic, 16) reduction(+ : chance)
    for (unsigned i = 0; i < angle_count; i++)
        for (unsigned j = 0; j < radius_count; j++)
            chance += chance_of(&angles[i], &radii[j], x, y);
    return chance / (density * width_of(x) * width_of(y)) - 1;
}

/* Takes a random pair of floats. False if it is outside the range of this program. */
static bool take(double near[2])
{
    const double r = sqrt(-2 * log(drand48())), angle = drand48() * M_PI / 4;
    near[0] = (float)(r * cos(angle));
    near[1] = (float)(r * sin(angle));
    return near[1] >= 0.05 && r >= 0.13 && r <= 3.2;
}

int main(int argc, char **argv)
{
    const int points = argc > 1 ? atoi(argv[1]) : 24;
    double square = 0, near[2];
    srand48(7);
    printf("%-12s %-12s %12s\n", "X", "Y", "difference");
    for (int i = 0; i < points; i++) {
        while (!take(near))
            continue;
        const double difference = judge(near);
        printf("%-12.6f %-12.6f %12.2e\n", near[0], near[1], difference);
        fflush(stdout);
        square += difference * difference / points;
    }
    printf("mean square %.3g: %.2g pairs\n", square, 6.5 * 6.5 / square);
    return 0;
}
