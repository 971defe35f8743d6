/* SPDX-License-Identifier: MIT
 *
 * The law of single values of the stream box-muller f32, near a value V. The program goes through
 * all radii of words from 2^4 on, which leaves out the largest, and all cosines and sines with
 * their probabilities, and computes
 *
 *   - the probabilities of CELLS neighbouring floats, as if the last step did not spread values;
 *   - the probabilities of WINDOWS floats with the factor `grow` of this step: the mean over its
 * width. The factor `turn`, which hides more of the grid, is left out.
 *
 * It compares them with the normal law, and prints the mean square of the relative difference, and
 * the number of values that show it by 6.5 standard deviations.
 *
 *     attack-law [V...]           by default 0.01, 0.1, 0.7, 1.5 and 3; a minute each
 */
#include "shuf/box_muller.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { CELLS = 16, WINDOWS = 16, WORD = 31, LEAST = 4, LEAST_FACTOR = -28 };

static const double spread = 0x1p-10; /* the width of the spread, relative to a value */

/* The probability that a word of 31 bits, with a second one behind it, is rounded to x. Ties of
 * large words are rounded to even floats. */
static double chance_of(float x)
{
    const double ulp = ldexp(1, ilogbf(x) - 23);
    const double width = ulp < 2 ? ulp : ulp - 1 + 2 * !(shuf__float_bits(x) & 1);
    return ldexp(width, -WORD);
}

/* The words that are rounded to x. */
static void words_of(float x, uint32_t word[2])
{
    word[0] = (uint32_t)x < 0x7fffffff ? (uint32_t)x : 0x7fffffff;
    word[1] = (uint32_t)ldexp(x - floor(x), WORD);
}

static float next(float x)
{
    return shuf__float_of_bits(shuf__float_bits(x) + 1);
}

/* ---- Cosines and sines ---- */

static double *below; /* [i]: the probability of a factor up to the float number i */
static uint32_t first_factor, factors;

static void add_factor(float factor, double chance)
{
    const uint32_t bits = shuf__float_bits(fabsf(factor));
    below[bits > first_factor ? bits - first_factor : 0] += chance;
}

static void fill_factors(void)
{
    first_factor = shuf__float_bits(ldexpf(1, LEAST_FACTOR));
    factors = shuf__float_bits(1.001f) - first_factor;
    below = calloc(factors, sizeof *below);
    if (!below)
        exit(71);
    for (float y = ldexpf(1, LEAST); y < ldexpf(1, WORD); y = next(y)) {
        uint32_t word[2];
        float pair[2];
        words_of(y, word);
        shuf_box_muller_angle_f32(word, pair);
        add_factor(pair[0], chance_of(y) / 2);
        add_factor(pair[1], chance_of(y) / 2);
    }
    for (uint32_t i = 1; i < factors; i++)
        below[i] += below[i - 1];
    for (uint32_t i = 0; i < factors; i++)
        below[i] /= below[factors - 1];
}

/* The probability of a factor below x. */
static double factor_below(double x)
{
    const float rounded = (float)x;
    const uint32_t bits = shuf__float_bits(rounded) - ((double)rounded >= x);
    if (x >= 1.001)
        return 1;
    return x <= ldexp(1, LEAST_FACTOR) ? 0 : below[bits - first_factor];
}

/* ---- Values ---- */

struct part {
    double low, high, chance;
};

/* Adds the probabilities that the product of this radius and a factor lies in the parts. */
static void add_radius(double radius, double chance, struct part *part)
{
    for (int i = 0; i < CELLS + WINDOWS; i++)
        part[i].chance +=
            chance * (factor_below(part[i].high / radius) - factor_below(part[i].low / radius));
}

static void add_radii(struct part *part)
{
    for (float x = ldexpf(1, LEAST); x < ldexpf(1, WORD); x = next(x))
        for (uint32_t near_1 = 0; near_1 < 2; near_1++) {
            uint32_t word[2];
            words_of(x, word);
            word[0] |= near_1 << WORD;
            add_radius(shuf_box_muller_radius_f32(word), chance_of(x) / 2, part);
        }
}

static void print(const char *name, double v, const struct part *part, int parts)
{
    double square = 0;
    for (int i = 0; i < parts; i++) {
        const double middle = (part[i].low + part[i].high) / 2, half = part[i].high - middle;
        const double density = 2 * exp(-middle * middle / 2) / sqrt(2 * M_PI);
        const double curve = 1 + (middle * middle - 1) * half * half / 6;
        const double difference = part[i].chance / (density * curve * 2 * half) - 1;
        square += difference * difference / parts;
    }
    printf("%-8g %-16s %12.3g %12.3g\n", v, name, square, 6.5 * 6.5 / square);
    fflush(stdout);
}

static void judge(double v)
{
    struct part part[CELLS + WINDOWS] = {0};
    const double ulp = ldexp(1, ilogb(v) - 23);
    for (int i = 0; i < CELLS; i++)
        part[i] = (struct part){v + (i - 0.5) * ulp, v + (i + 0.5) * ulp, 0};
    for (int i = 0; i < WINDOWS; i++) {
        const double middle = v + 12345.6789 * i * ulp;
        part[CELLS + i] = (struct part){middle * (1 - spread / 2), middle * (1 + spread / 2), 0};
    }
    add_radii(part);
    print("without spread", v, part, CELLS);
    print("with spread", v, part + CELLS, WINDOWS);
}

int main(int argc, char **argv)
{
    static const double values[] = {0.01, 0.1, 0.7, 1.5, 3};
    fill_factors();
    printf("%-8s %-16s %12s %12s\n", "value", "", "mean square", "values");
    for (int i = 1; i < argc; i++)
        judge(strtod(argv[i], NULL));
    for (size_t i = 0; argc == 1 && i < sizeof values / sizeof *values; i++)
        judge(values[i]);
    free(below);
    return 0;
}
