/* SPDX-License-Identifier: MIT
 *
 * shufctl's functions for text: values that arrive in pieces of any length, quantities with units
 * at the ends of their ranges, and the reader of .npy headers.
 */
#include "format_value.h"
#include "npy.h"
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

/* ---- Headers of .npy: no truncated or changed one is read beyond ---- */

static const struct {
    const char *descr, *shape;
    uint64_t records, record;
} arrays[] = {
    {"'<f4'", "(10,)", 10, 4},
    {"'<f4'", "(10, 3)", 10, 12},
    {"'<f8'", "(7, 2, 5)", 7, 80},
    {"'|u1'", "(0, 3)", 0, 3},
    {"'|b1'", "(5,)", 5, 1},
    {"'?'", "(5,)", 5, 1},
    {"'<c16'", "(2,)", 2, 16},
    {"'|S13'", "(4, 1)", 4, 13},
    {"'<U5'", "(3,)", 3, 20},
    {"'|V24'", "(3,)", 3, 24},
    {"'<M8[ns]'", "(6,)", 6, 8},
    {"'<m8[25s]'", "(6L,)", 6, 8},
    {"\"<i2\"", "(9223372036854775807, 0)", 9223372036854775807, 0},
    {"[('a', '<f4'), ('b', '|S3')]", "(8,)", 8, 7},
    {"[('a', '<f4', (2, 3)), ('', '|V4'), (('title', 'name'), '<i8')]", "(8, 2)", 8, 72},
    {"[('a name that is longer than any that is wanted here, and so is cut, with \\'s', 'u2')]",
     "(9,)", 9, 2},
    {"[('it\\'s', [('x', '<f8'), ('y', '<f8', (3,))], (2,)), ('z', 'u1')]", "(1,)", 1, 65},
};

enum { ARRAYS = sizeof arrays / sizeof *arrays };

static void headers_are_read(void **state)
{
    (void)state;
    char dict[512], why[SHUF__NPY_WHY];
    for (int i = 0; i < ARRAYS; i++) {
        struct shuf__npy npy;
        int size = snprintf(dict, sizeof dict,
                            "{'descr': %s, 'fortran_order': False, 'shape': %s, }    \n",
                            arrays[i].descr, arrays[i].shape);
        if (!shuf__npy_read(dict, (size_t)size, &npy, why))
            fail_msg("%s: %s", dict, why);
        assert_int_equal(npy.records, arrays[i].records);
        assert_int_equal(npy.record, arrays[i].record);
        assert_int_equal(npy.bytes, arrays[i].records * arrays[i].record);
    }
}

/* The keys may be in any order, and the last comma may be missing. In one dimension, Fortran's
 * order equals C's order. */
static void other_header_forms_are_read(void **state)
{
    (void)state;
    struct shuf__npy npy;
    char why[SHUF__NPY_WHY];
    static const char dict[] = "{\"shape\":(6,),'fortran_order':True,\n'descr':'<i4'}";
    assert_true(shuf__npy_read(dict, sizeof dict - 1, &npy, why));
    assert_true(npy.records == 6 && npy.record == 4 && npy.bytes == 24);
}

static void wrong_headers_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *dict, *words;
    } cases[] = {
        {"", "expected '{'"},
        {"{'descr': '<f4', 'fortran_order': False}", "without shape"},
        {"{'descr': '<f4', 'shape': (1,)}", "without fortran_order"},
        {"{'shape': (1,), 'fortran_order': False}", "without descr"},
        {"{'descr': '<f4', 'size': 3}", "a key 'size'"},
        {"{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", "dtype '|O': objects are not"},
        {"{'descr': 'O', 'fortran_order': False, 'shape': (1,)}", "dtype 'O': objects are not"},
        {"{'descr': [('a', '<f4'), ('b', '|O')], 'fortran_order': False, 'shape': (1,)}",
         "dtype '|O': objects"},
        {"{'descr': '<x4', 'fortran_order': False, 'shape': (1,)}", "dtype '<x4': not known"},
        {"{'descr': '<f', 'fortran_order': False, 'shape': (1,)}", "dtype '<f': not known"},
        {"{'descr': '<f4x', 'fortran_order': False, 'shape': (1,)}", "dtype '<f4x': not known"},
        {"{'descr': '', 'fortran_order': False, 'shape': (1,)}", "dtype '': not known"},
        {"{'descr': [('a', '<f4'), ('b', '')], ", "dtype '': not known"},
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3)}", "fortran_order True: the"},
        {"{'descr': '<f4', 'fortran_order': None, 'shape': (2,)}", "expected True or False"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': ()}", "shape (): a single value"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", "expected a number at \"-1"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (18446744073709551616,)}",
         "a number above 2^64"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
         "a number above 2^64"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2305843009213693952,)}",
         "more than 2^63 bytes"},
        {"{'descr': [('a', '|V4611686018427387904'), ('b', '|V4611686018427387904')], ",
         "a record of more than 2^63 bytes"},
        {"{'descr': '<f4[ns]', 'fortran_order': False, 'shape': (1,)}", "'<f4[ns]': not known"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904,)}",
         "more than 2^63 bytes"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 4611686018427387904, 8)}",
         "more than 2^63 bytes"},
        {"{'descr': '<U18446744073709551615', 'fortran_order': False, 'shape': (2,)}",
         "more than 2^63 bytes"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct shuf__npy npy;
        char why[SHUF__NPY_WHY];
        if (shuf__npy_read(cases[i].dict, strlen(cases[i].dict), &npy, why) ||
            !strstr(why, cases[i].words))
            fail_msg("%s: %s", cases[i].dict, why);
    }
}

static void deepest_nesting_is_read(void **state)
{
    (void)state;
    enum { DEEP = 31 };
    static char dict[DEEP * 11 + 64] = "{'descr': ";
    struct shuf__npy npy;
    char why[SHUF__NPY_WHY];
    for (int i = 0; i < DEEP; i++)
        strcat(dict, "[('a', ");
    strcat(dict, "'<f4'");
    for (int i = 0; i < DEEP; i++)
        strcat(dict, ")]");
    strcat(dict, ", 'fortran_order': False, 'shape': (2,)}");
    if (!shuf__npy_read(dict, strlen(dict), &npy, why))
        fail_msg("%s: %s", dict, why);
    assert_int_equal(npy.record, 4);
}

static void too_deep_nesting_is_refused(void **state)
{
    (void)state;
    enum { DEEP = 1000 };
    static char dict[DEEP * 7 + 64] = "{'descr': ";
    struct shuf__npy npy;
    char why[SHUF__NPY_WHY];
    for (int i = 0; i < DEEP; i++)
        strcat(dict, "[('a', ");
    assert_false(shuf__npy_read(dict, strlen(dict), &npy, why));
    assert_non_null(strstr(why, "nested more than 32 deep"));
}

static void magic_and_version_are_checked(void **state)
{
    (void)state;
    static const struct {
        const char *front;
        size_t size;
        bool magic;
        size_t dict, header;
    } cases[] = {
        {"\x93NUMPY\x01\x00\x76\x00{'", 12, true, 10, 128},
        {"\x93NUMPY\x02\x00\x74\x01\x02\x00", 12, true, 12, 0x20174 + 12},
        {"\x93NUMPY\x03\x00\x74\x00\x00\x00", 12, true, 12, 128},
        {"\x93NUMPY\x03\x00\x74\x00\x00\x01", 12, true, 12, 0x1000074 + 12},
        {"\x93NUMPY\x01\x00\x76\x00", 10, true, 10, 128},
        {"\x93NUMPY\x01\x00\x76", 9, true, 0, 0},
        {"\x93NUMPY\x02\x00\x74\x01\x02", 11, true, 0, 0},
        {"\x93NUMPY\x04\x00\x74\x01\x02\x00", 12, true, 0, 0},
        {"\x93NUMPY\x00\x00\x74\x01\x02\x00", 12, true, 0, 0},
        {"\x93NUMPX\x01\x00\x76\x00{'", 12, false, 0, 0},
        {"\x93NUM", 4, false, 0, 0},
        {"", 0, false, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct shuf__npy npy;
        char why[SHUF__NPY_WHY] = "";
        bool magic = shuf__npy_begins((const uint8_t *)cases[i].front, cases[i].size, &npy, why);
        assert_int_equal(magic, cases[i].magic);
        assert_int_equal(npy.dict, cases[i].dict);
        assert_int_equal(npy.header, cases[i].header);
        assert_int_equal(*why != '\0', magic && npy.header == 0);
    }
}

/* Copies the header into memory of its exact size. A sanitizer then reports a read past the end. */
static bool read_copy(const char *dict, size_t size)
{
    struct shuf__npy npy;
    char why[SHUF__NPY_WHY];
    char *copy = malloc(size + !size);
    memcpy(copy, dict, size);
    bool read = shuf__npy_read(copy, size, &npy, why);
    assert_int_equal(read, !*why);
    if (read)
        assert_true(npy.bytes <= INT64_MAX && npy.record <= INT64_MAX);
    free(copy);
    return read;
}

static void broken_headers_are_survived(void **state)
{
    (void)state;
    static const char whole[] = "{'descr': [('a', '<f4', (2, 3)), (('t', 'b'), '<M8[ns]')], "
                                "'fortran_order': False, 'shape': (12, 5)}";
    char dict[sizeof whole];
    random_start("broken_headers_are_survived");
    for (size_t size = 0; size < sizeof whole - 1; size++)
        assert_false(read_copy(whole, size));
    assert_true(read_copy(whole, sizeof whole - 1));
    assert_false(read_copy("{'\\", 3));
    for (int i = 0; i < 20000; i++) {
        memcpy(dict, whole, sizeof whole);
        for (uint64_t changes = 1 + random_below(3); changes > 0; changes--)
            dict[random_below(sizeof whole - 1)] =
                random_below(2) ? whole[random_below(sizeof whole - 1)] : (char)random_u64();
        read_copy(dict, sizeof whole - 1);
    }
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
        cmocka_unit_test(headers_are_read),
        cmocka_unit_test(other_header_forms_are_read),
        cmocka_unit_test(wrong_headers_are_refused),
        cmocka_unit_test(deepest_nesting_is_read),
        cmocka_unit_test(too_deep_nesting_is_refused),
        cmocka_unit_test(magic_and_version_are_checked),
        cmocka_unit_test(broken_headers_are_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
