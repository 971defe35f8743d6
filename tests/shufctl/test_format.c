/* SPDX-License-Identifier: MIT
 *
 * shufctl's functions that make text: values that arrive in pieces of any length, and quantities
 * with units at the ends of their ranges.
 */
#include "format_value.h"
#include "output.h"
#include "support/cmocka_all.h"
#include "support/random.h"
#include "units.h"
#include "value_file.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 3, COUNT = 20001, VALUES = ROWS * COUNT };

static void fill_with_random_values(uint8_t *values, unsigned width)
{
    for (int i = 0; i < VALUES; i++) {
        uint64_t value = random_u64() >> random_below(64);
        memcpy(values + (size_t)i * width, &value, width);
    }
}

/* Makes the expected text with printf(), which format_value.c does not use. */
static size_t expect_text(const uint8_t *values, unsigned width, bool batch, char *out)
{
    size_t size = 0;
    for (int i = 0; i < VALUES; i++) {
        uint64_t value = 0;
        memcpy(&value, values + (size_t)i * width, width);
        size += (size_t)sprintf(out + size, "%" PRIu64 "%c", value,
                                batch && i % COUNT != COUNT - 1 ? ' ' : '\n');
    }
    return size;
}

/* Writes pieces of 0 to 19 bytes, so that values are split at every place. */
static void write_in_pieces(struct shuf__text *text, const uint8_t *bytes, size_t size)
{
    while (size > 0) {
        size_t piece = random_below(20);
        piece = piece < size ? piece : size;
        assert_true(shuf__text_write(text, bytes, piece));
        bytes += piece;
        size -= piece;
    }
    assert_true(shuf__text_flush(text));
}

static void check_pieces(unsigned width, bool batch)
{
    static struct shuf__text text;
    static char expected[VALUES * 21 + 1], got[VALUES * 21 + 1];
    static uint8_t values[VALUES * sizeof(uint64_t)];
    shuf_shape shape = {.rows = ROWS, .count = COUNT, .width = width};
    FILE *file = tmpfile();
    assert_non_null(file);
    struct shuf__output output = {.fd = fileno(file), .name = "test"};
    fill_with_random_values(values, width);
    size_t size = expect_text(values, width, batch, expected);
    shuf__text_start(&text, &output, &shape, batch, ' ');
    write_in_pieces(&text, values, (size_t)VALUES * width);
    rewind(file);
    assert_int_equal(fread(got, 1, sizeof got, file), size);
    assert_memory_equal(got, expected, size);
    fclose(file);
}

static void values_are_joined_across_pieces(void **state)
{
    (void)state;
    random_start("values_are_joined_across_pieces");
    check_pieces(2, false);
    check_pieces(4, false);
    check_pieces(4, true);
    check_pieces(8, false);
    check_pieces(8, true);
}

/* The text is the shortest that reads back as the same value. */
static void value_text_is_shortest(void **state)
{
    (void)state;
    static const struct {
        shuf_dtype dtype;
        uint64_t bits;
        const char *text;
    } rows[] = {
        {SHUF_U32, 0, "0"},
        {SHUF_U64, UINT64_MAX, "18446744073709551615"},
        {SHUF_F64, 0, "0"},
        {SHUF_F64, 0x8000000000000000, "-0"},
        {SHUF_F64, 0x3fb999999999999a, "0.1"},
        {SHUF_F64, 0x3fb999999999999b, "0.10000000000000002"},
        {SHUF_F64, 0xbfd5555555555555, "-0.3333333333333333"},
        {SHUF_F64, 0x4630000000000000, "1.2676506002282294e+30"},
        {SHUF_F32, 0x3dcccccd, "0.1"},
        {SHUF_F32, 0x3dccccce, "0.10000001"},
        {SHUF_F32, 0xc2280000, "-42"},
        {SHUF_F16, 0x2e66, "0.099975586"},
        {SHUF_F16, 0x7bff, "65504"},
        {SHUF_F16, 0x8001, "-5.9604645e-08"},
        {SHUF_BF16, 0x3dcd, "0.100097656"},
        {SHUF_BF16, 0xbfc0, "-1.5"},
    };
    char text[SHUF__VALUE_TEXT];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(shuf__value_text(rows[i].dtype, rows[i].bits, text), strlen(rows[i].text));
        assert_string_equal(text, rows[i].text);
    }
}

/* ---- Fractions ---- */

/* Compares with the C library. The text has the fewest digits that read back as the same value, but
 * at least 15 (f64) or 6 (f32). */
static void expect_fraction(double value, bool wide)
{
    char text[SHUF__VALUE_TEXT], expected[SHUF__VALUE_TEXT];
    uint64_t bits = 0;
    const float narrow = (float)value;
    memcpy(&bits, wide ? (const void *)&value : (const void *)&narrow, wide ? 8 : 4);
    for (int digits = wide ? 15 : 6;; digits++) {
        snprintf(expected, sizeof expected, "%.*g", digits, wide ? value : (double)narrow);
        const double again = wide ? strtod(expected, NULL) : (double)strtof(expected, NULL);
        if (digits == (wide ? 17 : 9) || again == (wide ? value : (double)narrow))
            break;
    }
    assert_int_equal(shuf__value_text(wide ? SHUF_F64 : SHUF_F32, bits, text), strlen(expected));
    assert_string_equal(text, expected);
}

static void expect_fractions(double value)
{
    expect_fraction(value, true);
    expect_fraction(value, false);
    expect_fraction(-value, true);
}

static double neighbour_of(double value, int steps)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits += (uint64_t)steps;
    memcpy(&value, &bits, sizeof bits);
    return value;
}

/* At these values the decimal exponent, the binary exponent or the method of conversion changes. */
static void fractions_at_edges_match_printf(void **state)
{
    (void)state;
    static const double rows[] = {0,          0.5,       1,
                                  1.5,        2.5,       0.1,
                                  0.3,        8388608.5, 16777216,
                                  9.9999995,  99999.95,  999999.5,
                                  0.00001,    0.0001,    0.00099999995,
                                  123456,     1234567,   4503599627370497.5,
                                  0x1p53 + 2, INFINITY,  NAN};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect_fractions(rows[i]);
    for (int exponent = -80; exponent <= 80; exponent++)
        for (int steps = -3; steps <= 3; steps++) {
            expect_fractions(neighbour_of(ldexp(1, exponent), steps));
            expect_fractions(neighbour_of(pow(10, exponent / 4), steps));
            expect_fraction((double)(float)ldexp(1, exponent) * (1 + steps * 0x1p-23), false);
        }
}

static void random_fractions_match_printf(void **state)
{
    (void)state;
    random_start("random_fractions_match_printf");
    for (int i = 0; i < 300000; i++) {
        const uint64_t bits = random_u64();
        const double uniform = (double)(bits >> 11) * 0x1p-53;
        double any;
        memcpy(&any, &bits, sizeof any);
        expect_fractions(uniform);
        expect_fractions(ldexp(uniform, (int)random_below(140) - 70));
        expect_fractions((double)random_size(UINT64_C(1) << 60) / (double)(1 << random_below(20)));
        expect_fraction(any, true);
    }
}

/* Every value of the 16-bit types. */
static void fractions_of_16_bits_read_back(void **state)
{
    (void)state;
    char text[SHUF__VALUE_TEXT];
    for (uint32_t bits = 0; bits < 1 << 16; bits++)
        for (int dtype = SHUF_F16; dtype <= SHUF_BF16; dtype++) {
            const float value = (float)shuf__value_of((shuf_dtype)dtype, bits);
            shuf__value_text((shuf_dtype)dtype, bits, text);
            if (isnan(value))
                continue;
            assert_true(strtof(text, NULL) == value);
            expect_fraction((double)value, false);
        }
}

static void times_have_units(void **state)
{
    (void)state;
    static const struct {
        uint64_t ns;
        const char *text;
    } rows[] = {
        {0, "0 ns"},
        {999, "999 ns"},
        {1000, "1.000 us"},
        {1234567, "1.235 ms"},
        {12345678, "12.35 ms"},
        {999499999, "999.5 ms"},
        {999999999, "1.000 s"},
        {59940000000, "59.94 s"},
        {60000000000, "1 min 0 s"},
        {279100000000, "4 min 39 s"},
        {12345678901234, "3 h 25 min"},
        {86400 * UINT64_C(2000000000) + UINT64_C(14400000000000), "2 d 4 h"},
        {UINT64_MAX, "213503 d 23 h"},
    };
    char text[SHUF__UNITS_TEXT];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_string_equal(shuf__units_time(text, rows[i].ns), rows[i].text);
}

static void sizes_have_units(void **state)
{
    (void)state;
    static const struct {
        uint64_t bytes;
        const char *text;
    } rows[] = {
        {0, "0 B"},         {40, "40 B"},        {999, "999 B"},          {1000, "1.00 kB"},
        {999499, "999 kB"}, {999500, "1.00 MB"}, {4000000000, "4.00 GB"}, {UINT64_MAX, "18.4 EB"},
    };
    char text[SHUF__UNITS_TEXT];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_string_equal(shuf__units_bytes(text, rows[i].bytes), rows[i].text);
}

static void memory_sizes_have_binary_units(void **state)
{
    (void)state;
    static const struct {
        uint64_t bytes;
        const char *text;
    } rows[] = {
        {0, "0 B"},
        {1023, "1023 B"},
        {2 << 20, "2 MiB"},
        {UINT64_C(1) << 30, "1 GiB"},
        {UINT64_C(3) << 29, "1.50 GiB"},
        {1000000, "977 KiB"},
        {UINT64_C(1023) << 20, "1023 MiB"},
        {UINT64_MAX, "16 EiB"},
    };
    char text[SHUF__UNITS_TEXT];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_string_equal(shuf__units_memory(text, rows[i].bytes), rows[i].text);
}

static void rates_have_units(void **state)
{
    (void)state;
    char text[SHUF__UNITS_TEXT];
    assert_string_equal(shuf__units_rate(text, 1000000000, 10515247108), "95.1 M values/s");
    assert_string_equal(shuf__units_rate(text, 1000000000, 10000000), "100 G values/s");
    assert_string_equal(shuf__units_rate(text, 10, 1000000000), "10.0 values/s");
    assert_string_equal(shuf__units_rate(text, 10, 0), "-");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_joined_across_pieces),
        cmocka_unit_test(value_text_is_shortest),
        cmocka_unit_test(times_have_units),
        cmocka_unit_test(sizes_have_units),
        cmocka_unit_test(memory_sizes_have_binary_units),
        cmocka_unit_test(fractions_at_edges_match_printf),
        cmocka_unit_test(random_fractions_match_printf),
        cmocka_unit_test(fractions_of_16_bits_read_back),
        cmocka_unit_test(rates_have_units),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
