/* SPDX-License-Identifier: MIT
 *
 * Amounts of memory in the syntax of the configuration.
 */
#include "number.h"
#include "support/cmocka_all.h"

#include <string.h>

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
        cmocka_unit_test(amounts_are_parsed_and_formatted),
        cmocka_unit_test(percentages_never_exceed_total),
        cmocka_unit_test(bad_amounts_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
