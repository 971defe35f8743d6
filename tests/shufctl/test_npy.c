/* SPDX-License-Identifier: MIT
 *
 * The reader of .npy headers in shufctl: every version, plain types and structures, and the errors.
 * A truncated or changed header never makes the reader read outside the header.
 */
#include "npy.h"
#include "support/cmocka_all.h"
#include "support/random.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
