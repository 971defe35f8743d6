/* SPDX-License-Identifier: MIT
 *
 * See format_value.h. Whole numbers are converted without printf(), because it would be the slowest
 * step between device and file.
 */
#include "format_value.h"

#include "fraction_text.h"

#include "shuf/half.h"

#include <stdio.h>
#include <string.h>

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
