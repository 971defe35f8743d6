/* SPDX-License-Identifier: MIT
 *
 * See format_value.h. No value near 1 is converted by printf(), because it would be the slowest
 * step between device and file.
 */
#include "format_value.h"

#include "shuf/half.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Fractions ---- */

/* snprintf() and strtod() would be the slowest step between device and file. So values near 1 are
 * converted by integers of 128 bits, which is exact. The p digits of a value m * 2^q are
 * round(m * 5^k / 2^s). Here e is the decimal exponent of the value, k = p - 1 - e, and
 * s = -(q + k). */

typedef unsigned __int128 wide_uint;

enum {
    POWERS = 28,      /* of 5, in 64 bits */
    SHIFT_MOST = 120, /* more: the value is far below the range of k */
    FIXED_LEAST = -4, /* the least exponent that "%g" prints without "e" */
};

#define FIVES(x) x, x * 5, x * 25, x * 125
static const uint64_t fives[POWERS] = {
    FIVES(UINT64_C(1)),
    FIVES(UINT64_C(625)),
    FIVES(UINT64_C(390625)),
    FIVES(UINT64_C(244140625)),
    FIVES(UINT64_C(152587890625)),
    FIVES(UINT64_C(95367431640625)),
    FIVES(UINT64_C(59604644775390625)),
};

static const uint64_t tens[] = {
    1,
    10,
    100,
    1000,
    10000,
    100000,
    1000000,
    10000000,
    100000000,
    1000000000,
    10000000000,
    100000000000,
    1000000000000,
    10000000000000,
    100000000000000,
    1000000000000000,
    10000000000000000,
    100000000000000000,
};

/* m * 2^q */
struct binary {
    uint64_t m;
    int q;
    bool is_power; /* a power of 2: the next lower value is nearer than the next higher one */
};

/* digits * 10^(exponent - (precision - 1)) */
struct decimal {
    uint64_t digits;
    int exponent, precision;
};

/* Prints any value with snprintf() and strtod(), slowly. */
static size_t print_slowly(double value, bool wide, char text[SHUF__VALUE_TEXT])
{
    const int most = wide ? 17 : 9;
    int digits = wide ? 15 : 6, length;
    do {
        length = snprintf(text, SHUF__VALUE_TEXT, "%.*g", digits, value);
    } while (digits++ < most &&
             (wide ? strtod(text, NULL) != value : (double)strtof(text, NULL) != value));
    return (size_t)length;
}

/* Splits a normal value into m and q. */
static struct binary split(double value, bool wide)
{
    const float narrow = (float)value;
    uint64_t bits;
    uint32_t narrow_bits;
    memcpy(&bits, &value, sizeof bits);
    memcpy(&narrow_bits, &narrow, sizeof narrow_bits);
    const int width = wide ? 52 : 23;
    const uint64_t all = wide ? bits : narrow_bits, unit = UINT64_C(1) << width,
                   fraction = all & (unit - 1);
    return (struct binary){fraction | unit, (int)(all >> width) - (wide ? 1075 : 150),
                           fraction == 0};
}

/* True if the decimal number reads back as b. Both numbers are compared after a multiplication by
 * 5^k * 2^-q. Then the neighbours of b are 5^k away; below a power of 2, half of that. In the
 * middle between two neighbours, reading rounds to the even m. */
static bool reads_back(const struct binary *b, wide_uint exact, wide_uint d, int k)
{
    const bool below = d < exact;
    const wide_uint distance = (below ? exact - d : d - exact) * (below && b->is_power ? 4 : 2);
    return distance < fives[k] || (distance == fives[k] && b->m % 2 == 0);
}

/* Rounds b to `precision` digits. Sets *same to true if the digits read back as b. The guessed
 * decimal exponent must not be smaller than the exponent of b. Returns false if a number is out of
 * range. */
static bool round_to(const struct binary *b, struct decimal *d, bool *same)
{
    int k, shift;
    wide_uint exact;
    for (;; d->exponent--) {
        k = d->precision - 1 - d->exponent;
        shift = -(b->q + k);
        if (k < 0 || k >= POWERS || shift < 1 || shift > SHIFT_MOST)
            return false;
        exact = (wide_uint)b->m * fives[k];
        d->digits = (uint64_t)(exact >> shift);
        if (d->digits >= tens[d->precision - 1])
            break;
    }
    const wide_uint unit = (wide_uint)1 << shift, rest = exact & (unit - 1);
    d->digits += rest > unit / 2 || (rest == unit / 2 && d->digits % 2 == 1);
    *same = reads_back(b, exact, (wide_uint)d->digits << shift, k);
    if (d->digits == tens[d->precision]) {
        d->digits /= 10;
        d->exponent++;
    }
    return true;
}

/* Writes `count` digits and returns the end. */
static char *write_digits(char *to, uint64_t digits, int count)
{
    for (int i = count; i-- > 0; digits /= 10)
        to[i] = (char)('0' + digits % 10);
    return to + count;
}

static char *write_exponent(char *to, int exponent)
{
    *to++ = 'e';
    *to++ = exponent < 0 ? '-' : '+';
    return write_digits(to, (uint64_t)abs(exponent), 2);
}

/* As "%g": without zeros at the end. */
static char *write_decimal(char *to, const struct decimal *d)
{
    uint64_t digits = d->digits;
    int count = d->precision;
    for (; count > 1 && digits % 10 == 0; count--)
        digits /= 10;
    const bool fixed = d->exponent >= FIXED_LEAST && d->exponent < d->precision;
    const int whole = !fixed ? 1 : d->exponent + 1; /* digits before the point */
    if (whole <= 0) {
        memcpy(to, "0.0000", 6);
        return write_digits(to + 2 - whole, digits, count);
    }
    for (; count < whole; count++)
        digits *= 10;
    char *end = write_digits(to, digits, count);
    if (count > whole) {
        memmove(to + whole + 1, to + whole, (size_t)(count - whole));
        to[whole] = '.';
        end++;
    }
    return fixed ? end : write_exponent(end, d->exponent);
}

size_t shuf__fraction_text(double value, bool wide, char text[SHUF__VALUE_TEXT])
{
    const double size = fabs(value);
    const int least = wide ? 15 : 6;
    if (!(size >= 1e-19 && size < 1e19)) /* 0, the infinities, NaN, and every subnormal value */
        return print_slowly(value, wide, text);
    const struct binary b = split(size, wide);
    const int guess = (int)ceil((b.q + (wide ? 53 : 24)) * 0.30103);
    struct decimal d = {0};
    bool same = false;
    for (d.precision = least - 1; !same;) {
        d.precision++;
        d.exponent = guess;
        if (!round_to(&b, &d, &same))
            return print_slowly(value, wide, text);
    }
    char *to = text;
    if (value < 0)
        *to++ = '-';
    to = write_decimal(to, &d);
    *to = '\0';
    return (size_t)(to - text);
}

/* ---- Values ---- */

bool shuf__value_is_fraction(shuf_dtype dtype)
{
    return dtype >= SHUF_F64;
}

double shuf__value_of(shuf_dtype dtype, uint64_t bits)
{
    const uint32_t low = (uint32_t)bits;
    double wide;
    float narrow;
    switch (dtype) {
    case SHUF_F64:
        memcpy(&wide, &bits, sizeof wide);
        return wide;
    case SHUF_F32:
        memcpy(&narrow, &low, sizeof narrow);
        return narrow;
    case SHUF_F16:
        return shuf_of_f16((uint16_t)bits);
    default:
        return shuf_of_bf16((uint16_t)bits);
    }
}

static size_t write_whole(uint64_t value, char text[SHUF__VALUE_TEXT])
{
    char digits[SHUF__VALUE_TEXT];
    size_t at = sizeof digits;
    do
        digits[--at] = (char)('0' + value % 10);
    while (value /= 10);
    const size_t length = sizeof digits - at;
    memcpy(text, digits + at, length);
    text[length] = '\0';
    return length;
}

size_t shuf__value_text(shuf_dtype dtype, uint64_t bits, char text[SHUF__VALUE_TEXT])
{
    if (!shuf__value_is_fraction(dtype))
        return write_whole(bits, text);
    return shuf__fraction_text(shuf__value_of(dtype, bits), dtype == SHUF_F64, text);
}

size_t shuf__value_text_of(shuf_dtype dtype, double value, char text[SHUF__VALUE_TEXT])
{
    if (shuf__value_is_fraction(dtype))
        return shuf__fraction_text(value, dtype == SHUF_F64, text);
    if (value >= 0 && value < 0x1p53)
        return write_whole((uint64_t)value, text);
    return (size_t)snprintf(text, SHUF__VALUE_TEXT, "about %.16g", value);
}
