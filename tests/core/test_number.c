/* SPDX-License-Identifier: MIT
 *
 * The syntax of numbers, and of amounts of memory: valid and invalid ones, and the errors.
 */
#include "number.h"
#include "support/cmocka_all.h"
#include "support/random.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define MAX UINT64_MAX

static const struct {
    const char *text;
    uint64_t value;
} good[] = {
    {"0", 0},
    {"7", 7},
    {"007", 7},
    {"1000", 1000},
    {"1_000_000", 1000000},
    {"1e9", 1000000000},
    {"1E9", 1000000000},
    {"1e+9", 1000000000},
    {"1e0", 1},
    {"0e99999999999999999999", 0},
    {"2.5e3", 2500},
    {"1.50e1", 15},
    {"1.0", 1},
    {"0.000001e6", 1},
    {"18.446744073709551615e18", MAX},
    {"18446744073709551615", MAX},
    {"9007199254740993", 9007199254740993}, /* 2^53 + 1, which no double represents */
    {"1e19", UINT64_C(10000000000000000000)},
    {"0x7", 7},
    {"0X1f", 31},
    {"0xFFFFFFFFFFFFFFFF", MAX},
    {"0xffff_ffff", 0xffffffff},
    {"0x1e9", 0x1e9}, /* e is a digit here */
    {"64Ki", 65536},
    {"1Mi", 1 << 20},
    {"3Gi", UINT64_C(3) << 30},
    {"1Ti", UINT64_C(1) << 40},
    {"1Pi", UINT64_C(1) << 50},
    {"15Ei", UINT64_C(15) << 60},
    {"0Ei", 0},
    {"1k", 1000},
    {"1K", 1000},
    {"10M", 10000000},
    {"8G", UINT64_C(8000000000)},
    {"8GB", UINT64_C(8000000000)},
    {"8kB", 8000},
    {"8GiB", UINT64_C(8) << 30},
    {"1KiB", 1024},
    {"3T", UINT64_C(3000000000000)},
    {"2P", UINT64_C(2000000000000000)},
    {"18E", UINT64_C(18000000000000000000)},
    {"1.5k", 1500},
    {"1.5Ki", 1536},
    {"0.5Gi", 1 << 29},
    {"1_000k", 1000000},
};

static const struct {
    const char *text, *message_part; /* why: a part of the message */
} bad[] = {
    {"", "expected a whole number"},
    {" ", "expected a whole number"},
    {" 7", "expected a whole number"},
    {"7 ", "expected a whole number"},
    {"+7", "expected a whole number"},
    {"seven", "expected a whole number"},
    {"e9", "expected a whole number"},
    {"1e", "expected a whole number"},
    {"1e-9", "expected a whole number"},
    {"1e9x", "expected a whole number"},
    {"1e9Ki", "expected a whole number"},
    {"1,000", "expected a whole number"},
    {"1__0", "expected a whole number"},
    {"_1", "expected a whole number"},
    {"1_", "expected a whole number"},
    {".5", "expected a whole number"},
    {"0x", "expected a whole number"},
    {"0x_1", "expected a whole number"},
    {"0xg", "expected a whole number"},
    {"0x7Ki", "expected a whole number"},
    {"1ki", "did you mean 1Ki?"},
    {"10m", "did you mean 10M?"},
    {"10mib", "did you mean 10MiB?"},
    {"8gb", "did you mean 8GB?"},
    {"8 GB", "did you mean 8GB?"},
    {"1.5g", "did you mean 1.5G?"},
    {"1Zi", "expected a whole number"},
    {"7B", "expected a whole number"}, /* B could mean bytes or a billion */
    {"1kM", "expected a whole number"},
    {"0x7k", "expected a whole number"},
    {"1.0005k", "expected a whole number"},
    {"1.1Ki", "expected a whole number"},
    {"nan", "expected a whole number"},
    {"inf", "expected a whole number"},
    {"1.5", "expected a whole number, 0 to 2^64 - 1"},
    {"0.5", "expected a whole number, 0 to 2^64 - 1"},
    {"1.25e1", "expected a whole number, 0 to 2^64 - 1"},
    {"-1", "expected 0 to 2^64 - 1"},
    {"-0x7", "expected 0 to 2^64 - 1"},
    {"1e30", "expected 0 to 2^64 - 1"},
    {"1e20", "expected 0 to 2^64 - 1"},
    {"2e19", "expected 0 to 2^64 - 1"},
    {"1e99999999999999999999", "expected 0 to 2^64 - 1"},
    {"18446744073709551616", "expected 0 to 2^64 - 1"},
    {"99999999999999999999999999", "expected 0 to 2^64 - 1"},
    {"0x10000000000000000", "expected 0 to 2^64 - 1"},
    {"16Ei", "expected 0 to 2^64 - 1"},
    {"18446744073709551615Ki", "expected 0 to 2^64 - 1"},
};

static void good_numbers_are_parsed(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        struct shuf__error error = {0};
        uint64_t value = 4711;
        if (shuf__number_parse("n", good[i].text, &value, &error) != SHUF_OK)
            fail_msg("%s", error.text);
        if (value != good[i].value)
            fail_msg("%s: %" PRIu64 ", expected %" PRIu64, good[i].text, value, good[i].value);
    }
}

static void bad_numbers_are_explained(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct shuf__error error = {0};
        uint64_t value = 4711;
        if (shuf__number_parse("epoch", bad[i].text, &value, &error) != SHUF_INVALID)
            fail_msg("'%s' was taken as %" PRIu64, bad[i].text, value);
        assert_int_equal(error.status, SHUF_INVALID);
        if (!strstr(error.text, bad[i].message_part) || !strstr(error.text, bad[i].text) ||
            strncmp(error.text, "epoch ", 6) != 0)
            fail_msg("'%s': the message is '%s', which lacks the field, the text or '%s'",
                     bad[i].text, error.text, bad[i].message_part);
    }
}

static void decimals_are_parsed(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double value;
    } rows[] = {{"0", 0},         {"-3", -3},         {"0.25", 0.25}, {"1e-3", 1e-3},
                {"1e308", 1e308}, {"1e-310", 1e-310}, {"0e999", 0},   {"-inf", -(double)INFINITY}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct shuf__error error;
        double value;
        assert_int_equal(shuf__decimal_parse("std", rows[i].text, &value, &error), SHUF_OK);
        assert_true(value == rows[i].value);
    }
    static const char *const wrong[][2] = {
        {"1e400", "std 1e400: too large for a double"},
        {"-1e400", "std -1e400: too large for a double"},
        {"1e-400", "std 1e-400: too small for a double"},
        {"1e400x", "std 1e400x: expected a decimal number"},
        {"", "std '': expected a decimal number"},
        {" 1", "std  1: expected a decimal number"},
        {"0x1p3", "std 0x1p3: expected a decimal number"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct shuf__error error;
        double value;
        assert_int_equal(shuf__decimal_parse("std", wrong[i][0], &value, &error), SHUF_INVALID);
        assert_memory_equal(error.text, wrong[i][1], strlen(wrong[i][1]));
    }
}

static void ratios_are_exact(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t numerator, denominator;
    } rows[] = {
        {"0", 0, 1},
        {"0.0", 0, 1},
        {"0e-99", 0, 1},
        {"3", 3, 1},
        {"0.7", 7, 10},
        {"0.70", 7, 10},
        {"1e-3", 1, 1000},
        {"2.5E-3", 1, 400},
        {"2000e-3", 2, 1},
        {"1e-19", 1, UINT64_C(10000000000000000000)},
        {"8e9", UINT64_C(8000000000), 1},
        {"0.5Ki", 512, 1},
        {"0x10", 16, 1},
        {"1_000", 1000, 1},
        {"0.30000000000000004", UINT64_C(7500000000000001), UINT64_C(25000000000000000)},
        {"0.00000000000000000064Ki", 1, UINT64_C(1525878906250000)},
        {"2/3", 2, 3},
        {"4/6", 2, 3},
        {"0/5", 0, 1},
        {"0.7/0.2", 7, 2},
        {"1e-3/1e-6", 1000, 1},
        {"18446744073709551615/18446744073709551614", MAX, MAX - 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct shuf__error error;
        struct shuf__ratio ratio = {99, 99};
        if (shuf__ratio_parse("weight", rows[i].text, &ratio, &error))
            fail_msg("%s", error.text);
        if (ratio.numerator != rows[i].numerator || ratio.denominator != rows[i].denominator)
            fail_msg("'%s': %" PRIu64 " / %" PRIu64, rows[i].text, ratio.numerator,
                     ratio.denominator);
    }
}

static void wrong_ratios_are_explained(void **state)
{
    (void)state;
    static const char *const wrong[][2] = {
        {"", "weight '': expected a number of 0 or more such as 3, 0.7, 1e-3 or 2/3"},
        {"-1", "weight -1: expected a number of 0 or more"},
        {"2/-3", "weight 2/-3: expected a number of 0 or more"},
        {"nan", "weight nan: expected a number of 0 or more"},
        {"inf", "weight inf: expected a number of 0 or more"},
        {"1/0", "weight 1/0: expected a number of 0 or more"},
        {"1/", "weight 1/: expected a number of 0 or more"},
        {"/2", "weight /2: expected a number of 0 or more"},
        {"1/2/3", "weight 1/2/3: expected a number of 0 or more"},
        {"0.7 ", "weight 0.7 : expected a number of 0 or more"},
        {".7", "weight .7: expected a number of 0 or more"},
        {"1e--3", "weight 1e--3: expected a number of 0 or more"},
        {"1e-", "weight 1e-: expected a number of 0 or more"},
        {"1e20", "weight 1e20: expected at most 19 digits; round it"},
        {"1e-20", "weight 1e-20: expected at most 19 digits; round it"},
        {"1e-999999999999", "weight 1e-999999999999: expected at most 19 digits"},
        {"0.123456789012345678901", "weight 0.123456789012345678901: expected at most 19 digits"},
        {"1e-10/1e10", "weight 1e-10/1e10: expected at most 19 digits"},
        {"99999999999999999999999999999999999999999999999999999999999999999/3",
         "weight 9999999999999999999999999999999999999999999999999999999999999999: expected"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct shuf__error error;
        struct shuf__ratio ratio;
        if (shuf__ratio_parse("weight", wrong[i][0], &ratio, &error) != SHUF_INVALID)
            fail_msg("'%s' was taken", wrong[i][0]);
        if (strncmp(error.text, wrong[i][1], strlen(wrong[i][1])) != 0)
            fail_msg("'%s': %s, expected %s", wrong[i][0], error.text, wrong[i][1]);
    }
}

static void long_text_is_shortened_in_message(void **state)
{
    (void)state;
    char text[1000];
    struct shuf__error error = {0};
    uint64_t value;
    memset(text, '9', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_int_equal(shuf__number_parse("n", text, &value, &error), SHUF_INVALID);
    assert_non_null(strstr(error.text, "expected 0 to 2^64 - 1"));
}

static void printed_numbers_are_read_back(void **state)
{
    (void)state;
    random_start("printed_numbers_are_read_back");
    for (int i = 0; i < 10000; i++) {
        uint64_t number = random_u64() >> random_below(64), value;
        struct shuf__error error = {0};
        char text[64];
        snprintf(text, sizeof text, i % 2 ? "%" PRIu64 : "0x%" PRIx64, number);
        assert_int_equal(shuf__number_parse("n", text, &value, &error), SHUF_OK);
        assert_int_equal(value, number);
    }
}

static void ranges_are_checked(void **state)
{
    (void)state;
    static const struct {
        uint64_t least, most;
        const char *text, *message; /* NULL: valid */
    } rows[] = {
        {1, UINT64_C(1) << 62, "1", NULL},
        {1, UINT64_C(1) << 62, "4611686018427387904", NULL},
        {1, UINT64_C(1) << 62, "0", "n 0: expected 1 to 2^62"},
        {1, UINT64_C(1) << 62, "-5", "n -5: expected 1 to 2^62"},
        {1, UINT64_C(1) << 62, "1e30", "n 1e30: expected 1 to 2^62"},
        {1, UINT64_C(1) << 62, "1.5", "n 1.5: expected a whole number, 1 to 2^62"},
        {0, UINT64_MAX, "1e20", "n 1e20: expected 0 to 2^64 - 1"},
        {0, UINT64_MAX, "0x1k", "n 0x1k: expected a whole number such as 1000, 1e9, 10M or 64Ki"},
        {2, 1000000, "1M", NULL},
        {2, 1000000, "1Mi", "n 1Mi: expected 2 to 1000000"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct shuf__error error = {0};
        uint64_t value;
        shuf_status status =
            shuf__number_parse_in("n", rows[i].text, rows[i].least, rows[i].most, &value, &error);
        assert_int_equal(status, rows[i].message ? SHUF_INVALID : SHUF_OK);
        if (rows[i].message)
            assert_string_equal(error.text, rows[i].message);
    }
}

static void durations_are_parsed_and_printed(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t nanoseconds;
        const char *printed;
    } rows[] = {
        {"10min", UINT64_C(600000000000), "10min"},
        {"600s", UINT64_C(600000000000), "10min"},
        {"600", UINT64_C(600000000000), "10min"},
        {"1h", UINT64_C(3600000000000), "1h"},
        {"0.5s", 500000000, "500ms"},
        {"50us", 50000, "50us"},
        {"0", 0, "0"},
        {"0ms", 0, "0"},
        {"7ns", 7, "7ns"},
        {"1e3ms", 0, NULL},
        {"10m", 0, NULL},
        {"10 min", 0, NULL},
        {"10MIN", 0, NULL},
        {"-1s", 0, NULL},
        {"0.5ns", 0, NULL},
        {"25h", 0, NULL}, /* longer than the most that the call below allows */
        {"", 0, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct shuf__error error = {0};
        char printed[SHUF__NUMBER_TEXT];
        uint64_t value = 4711;
        shuf_status status =
            shuf__duration_parse("t", rows[i].text, 0, UINT64_C(86400000000000), &value, &error);
        assert_int_equal(status, rows[i].printed ? SHUF_OK : SHUF_INVALID);
        if (!rows[i].printed)
            continue;
        assert_int_equal(value, rows[i].nanoseconds);
        assert_string_equal(shuf__duration_text(printed, value), rows[i].printed);
    }
}

static void bad_durations_are_explained(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"0.5ns", "t 0.5ns: expected whole nanoseconds, 0 to 24h"},
        {"25h", "t 25h: expected 0 to 24h"},
        {"10m", "t 10m: expected a duration such as 10min, 5s or 50us; the units are ns, us, ms, "
                "s, min and h; did you mean 10min?"},
        {"5 Seconds", "t 5 Seconds: expected a duration such as 10min, 5s or 50us; the units are "
                      "ns, us, ms, s, min and h; did you mean 5s?"},
        {"2H", "t 2H: expected a duration such as 10min, 5s or 50us; the units are ns, us, ms, "
               "s, min and h; did you mean 2h?"},
        {"2x", "t 2x: expected a duration such as 10min, 5s or 50us; the units are ns, us, ms, "
               "s, min and h"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct shuf__error error = {0};
        uint64_t value;
        assert_int_equal(
            shuf__duration_parse("t", rows[i][0], 0, UINT64_C(86400000000000), &value, &error),
            SHUF_INVALID);
        assert_string_equal(error.text, rows[i][1]);
    }
}

static void sizes_are_printed_exactly(void **state)
{
    (void)state;
    random_start("sizes_are_printed_exactly");
    for (int i = 0; i < 1000; i++) {
        uint64_t size = (random_u64() >> random_below(64)) << random_below(64), value;
        struct shuf__error error = {0};
        char text[SHUF__NUMBER_TEXT];
        shuf__size_text(text, size);
        assert_int_equal(shuf__number_parse("n", text, &value, &error), SHUF_OK);
        assert_int_equal(value, size);
        if (size % 1024 == 0 && size > 0)
            assert_int_equal(text[strlen(text) - 1], 'i');
    }
}

/* ---- Amounts of memory, in the syntax of the configuration ---- */

#define TOTAL (UINT64_C(24) << 30)

static void amounts_are_parsed_and_formatted(void **state)
{
    (void)state;
    static const struct {
        const char *text, *written;
        uint64_t bytes; /* of a total of TOTAL bytes */
    } rows[] = {
        {"0", "0", 0},
        {"0%", "0%", 0},
        {"25%", "25%", TOTAL / 4},
        {"100%", "100%", TOTAL},
        {"8Gi", "8Gi", UINT64_C(8) << 30},
        {"1073741824", "1Gi", UINT64_C(1) << 30},
        {"1e9", "1000000000", 1000000000},
        {"3Ki", "3Ki", 3072},
        {"9223372036854775807", "9223372036854775807", INT64_MAX},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct shuf__amount amount, again;
        struct shuf__error error;
        char text[SHUF__NUMBER_TEXT];
        assert_int_equal(shuf__amount_parse("x", rows[i].text, &amount, &error), SHUF_OK);
        assert_string_equal(shuf__amount_text(text, amount), rows[i].written);
        assert_string_equal(amount.written, rows[i].text);
        assert_int_equal(shuf__amount_bytes(amount, TOTAL), rows[i].bytes);
        assert_int_equal(shuf__amount_parse("x", text, &again, &error), SHUF_OK);
        assert_true(again.number == amount.number && again.percent == amount.percent);
    }
}

/* No fraction exceeds the total, and no small fraction is rounded to 0. */
static void percentages_never_exceed_total(void **state)
{
    (void)state;
    const struct shuf__amount quarter = {.number = 25, .percent = true},
                              all = {.number = 100, .percent = true};
    assert_int_equal(shuf__amount_bytes(quarter, 160 << 20), 40 << 20);
    assert_int_equal(shuf__amount_bytes(all, UINT64_C(1) << 62), UINT64_C(1) << 62);
}

static void bad_amounts_are_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"",    "%",    "101%", "-1",  "9223372036854775808",
                                        "1 %", "50%%", "25x",  "1Zi", "1.5%"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct shuf__amount amount;
        struct shuf__error error;
        assert_int_equal(shuf__amount_parse("host_memory", texts[i], &amount, &error),
                         SHUF_INVALID);
        assert_int_equal(strncmp(error.text, "host_memory ", strlen("host_memory ")), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_numbers_are_parsed),
        cmocka_unit_test(bad_numbers_are_explained),
        cmocka_unit_test(decimals_are_parsed),
        cmocka_unit_test(ratios_are_exact),
        cmocka_unit_test(wrong_ratios_are_explained),
        cmocka_unit_test(ranges_are_checked),
        cmocka_unit_test(durations_are_parsed_and_printed),
        cmocka_unit_test(bad_durations_are_explained),
        cmocka_unit_test(sizes_are_printed_exactly),
        cmocka_unit_test(long_text_is_shortened_in_message),
        cmocka_unit_test(printed_numbers_are_read_back),
        cmocka_unit_test(amounts_are_parsed_and_formatted),
        cmocka_unit_test(percentages_never_exceed_total),
        cmocka_unit_test(bad_amounts_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
