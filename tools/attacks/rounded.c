/* SPDX-License-Identifier: MIT
 *
 * How far single values of f16 and bf16 are from the normal law, rounded once to the type. A value
 * of a method is first a float, and so its boundaries are not quite those of the law: half a unit
 * of the float is missing, or the float is on a grid of its own.
 *
 * The program takes the values before the rounding as exactly normal. It sums the Kullback-Leibler
 * distance over all numbers of the type, and prints the number of values that show it by 6.5
 * standard deviations: 6.5^2 / 2 divided by the distance.
 *
 *     attack-rounded              a second
 */
#include "shuf/box_muller.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* One case. The table method rounds its number to an odd float z, then z std + mean to a float, and
 * then to the type; with mean 0 and std 1 only once. Box and Muller's method makes a float z. */
struct law {
    const char *type;
    bool is_table;
    float mean, std;
    shuf_box_muller method;
};

enum { MOST_Z = 9 };

static float float_of(uint32_t bits)
{
    return shuf__float_of_bits(bits);
}

/* Number i of all z in their order, and the least real number that becomes this z. */
static float z_of(const struct law *law, long i)
{
    if (law->is_table)
        return i >= 0 ? float_of((uint32_t)(2 * i + 1)) : -float_of((uint32_t)(-2 * i - 1));
    return i >= 0 ? float_of((uint32_t)i) : -float_of((uint32_t)-i);
}

static long double edge_of(const struct law *law, long i)
{
    if (law->is_table)
        return i >= 0 ? float_of((uint32_t)(2 * i)) : -float_of((uint32_t)(-2 * i));
    return ((long double)z_of(law, i) + z_of(law, i - 1)) / 2;
}

/* The numbers of a type in their order. */
static long number_of(const struct law *law, long i)
{
    const float z = z_of(law, i), y = law->is_table ? fmaf(z, law->std, law->mean)
                                                    : shuf_box_muller_scaled_odd(&law->method, z);
    const uint16_t code = law->type[0] == 'b' ? shuf_bf16(y) : shuf_f16(y);
    return code >> 15 ? -(long)(code & 0x7fff) : code & 0x7fff;
}

static long double value_of(const struct law *law, long number)
{
    const long code = labs(number);
    const long double value = law->type[0] == 'b' ? float_of((uint32_t)code << 16)
                              : code >> 10 ? ldexpl(1024 + (code & 1023), (int)(code >> 10) - 25)
                                           : ldexpl(code, -24);
    return number < 0 ? -value : value;
}

/* The first i from `first` on whose number is not below `number`. */
static long find(const struct law *law, long first, long end, long number)
{
    while (first < end) {
        const long middle = first + (end - first) / 2;
        if (number_of(law, middle) >= number)
            end = middle;
        else
            first = middle + 1;
    }
    return first;
}

static long double density(long double x)
{
    return expl(-x * x / 2) / sqrtl(2 * acosl(-1));
}

/* The distance that one number adds, whose reals are between `low` and `high` instead of
 * `exact_low` and `exact_high`. */
static long double distance(long double low, long double high, long double exact_low,
                            long double exact_high)
{
    const long double p = density((exact_low + exact_high) / 2) * (exact_high - exact_low);
    if (low >= high)
        return p;
    const long double more =
        (density(exact_low) * (exact_low - low) - density(exact_high) * (exact_high - high)) / p;
    return more > -1 ? p * ((1 + more) * log1pl(more) - more) : p;
}

static void attack(struct law law)
{
    law.method = shuf_box_muller_make(1, 0, law.mean, law.std);
    const long end = (long)shuf__float_bits(MOST_Z) / (law.is_table ? 2 : 1),
               last = number_of(&law, end - 1);
    long double sum = 0;
    long begin = -end;
    for (long number = number_of(&law, -end) + 1; number < last; number++) {
        const long first = find(&law, begin, end, number),
                   next = find(&law, first, end, number + 1);
        const long double value = value_of(&law, number),
                          low = (value + value_of(&law, number - 1)) / 2,
                          high = (value + value_of(&law, number + 1)) / 2;
        sum += distance(edge_of(&law, first), edge_of(&law, next), (low - law.mean) / law.std,
                        (high - law.mean) / law.std);
        begin = first;
    }
    printf("%-10s %-4s mean %4g std %4g: %.1e values\n", law.is_table ? "table" : "box-muller",
           law.type, law.mean, law.std, (double)(6.5L * 6.5L / 2 / sum));
}

int main(void)
{
    static const float cases[][2] = {{1, 1}, {0.3f, 1}, {3, 1}, {0, 1.5f}, {0, 3}, {0, 100}};
    const char *const types[] = {"f16", "bf16"};
    for (int type = 0; type < 2; type++) {
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
            attack((struct law){
                .type = types[type], .is_table = true, .mean = cases[i][0], .std = cases[i][1]});
        attack((struct law){.type = types[type], .std = 1});
    }
    return 0;
}
