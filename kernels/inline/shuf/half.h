/* SPDX-License-Identifier: MIT
 *
 * Rounds a float to binary16 (IEEE 754) or bfloat16, to nearest, ties to even, and converts back.
 * It uses integer operations, because a compiler need not have 16-bit types.
 */
#ifndef SHUF_HALF_H
#define SHUF_HALF_H

#include "inline.h"

#include <stdint.h>
#include <string.h>

SHUF_FUNCTION uint32_t shuf__float_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* Rounds x + rest towards 0, and sets the last bit of the result. If the result is then rounded to
 * 16 bits, this equals x + rest rounded once. x must be the float nearest to x + rest. */
SHUF_FUNCTION float shuf__float_sticky(float x, float rest)
{
    const uint32_t bits = (shuf__float_bits(x) - (x > 0 ? rest < 0 : rest > 0)) | 1;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Rounds a double towards 0 to a float, and sets its last bit. |x| must be at least 2^-97, so that
 * a float can hold the difference of x and its nearest float exactly. */
SHUF_FUNCTION float shuf__float_sticky_of(double x)
{
    const float nearest = (float)x;
    return shuf__float_sticky(nearest, (float)(x - (double)nearest));
}

/* Rounds `bits` to a multiple of 2^drop, ties to even, and drops the low zeros. */
SHUF_FUNCTION uint32_t shuf__rounded(uint32_t bits, unsigned drop)
{
    const uint32_t half = (UINT32_C(1) << (drop - 1)) - 1;
    return (bits + half + (bits >> drop & 1)) >> drop;
}

/* x must not be a NaN. */
SHUF_FUNCTION uint16_t shuf_bf16(float x)
{
    return (uint16_t)shuf__rounded(shuf__float_bits(x), 16);
}

/* x must not be a NaN. A number that is too large becomes infinite; one that is too small becomes
 * subnormal or 0. */
SHUF_FUNCTION uint16_t shuf_f16(float x)
{
    const uint32_t bits = shuf__float_bits(x), sign = bits >> 16 & 0x8000;
    const uint32_t magnitude = bits & 0x7fffffff, exponent = magnitude >> 23;
    if (exponent >= 127 + 16)
        return (uint16_t)(sign | 0x7c00);
    if (exponent >= 127 - 14) /* a carry out of the largest number makes infinity */
        return (uint16_t)(sign | shuf__rounded(magnitude - ((UINT32_C(127) - 15) << 23), 13));
    if (exponent < 127 - 25)
        return (uint16_t)sign;
    return (uint16_t)(sign |
                      shuf__rounded((magnitude & 0x7fffff) | 0x800000, 13 + 127 - 14 - exponent));
}

/* The exact value of a 16-bit number. */
SHUF_FUNCTION float shuf_of_bf16(uint16_t x)
{
    const uint32_t bits = (uint32_t)x << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

SHUF_FUNCTION float shuf_of_f16(uint16_t x)
{
    const uint32_t sign = (uint32_t)(x & 0x8000) << 16, magnitude = x & 0x7fff;
    uint32_t bits;
    float value;
    if (magnitude < 0x400) { /* subnormal: a multiple of 2^-24 */
        value = (float)magnitude * SHUF__2_MINUS_F32(24);
        bits = shuf__float_bits(value) | sign;
    } else {
        const uint32_t bias = magnitude >= 0x7c00 ? 255 - 31 : 127 - 15;
        bits = sign | ((magnitude << 13) + (bias << 23));
    }
    memcpy(&value, &bits, sizeof value);
    return value;
}

#endif
