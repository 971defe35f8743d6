/* SPDX-License-Identifier: MIT
 *
 * The table of statuses. The test repeats their numbers, because they are part of the protocol.
 * Also tests the function that writes an error.
 */
#include "support/cmocka_all.h"

#include "error.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    int number;
} frozen[] = {
    {"OK", 0},         {"INVALID", 1}, {"NO_DAEMON", 2}, {"BUSY", 3},     {"DENIED", 4},
    {"NO_MEMORY", 5},  {"DEVICE", 6},  {"VERSION", 7},   {"PROTOCOL", 8}, {"TIMEOUT", 9},
    {"CANCELLED", 10}, {"IO", 11},     {"INTERNAL", 12},
};
enum { FROZEN = sizeof frozen / sizeof frozen[0] };

static void numbers_are_frozen(void **state)
{
    (void)state;
    for (int i = 0; i < FROZEN; i++)
        assert_string_equal(shuf_status_name((shuf_status)frozen[i].number), frozen[i].name);
}

static void each_status_has_its_own_message(void **state)
{
    (void)state;
    static const shuf_status all[] = {
#define X(name, number, message) SHUF_##name,
        SHUF_STATUS_MAP(X)
#undef X
    };
    enum { ALL = sizeof all / sizeof all[0] };
    assert_in_range(ALL, FROZEN, 100);
    for (int i = 0; i < ALL; i++)
        for (int j = 0; j <= i; j++) {
            const char *a = shuf_status_message(all[i]), *b = shuf_status_message(all[j]);
            assert_int_equal(i == j, strcmp(a, b) == 0);
            assert_int_equal(i == j, all[i] == all[j]);
        }
}

static void unknown_numbers_are_named_unknown(void **state)
{
    (void)state;
    static const int numbers[] = {-1, 4711, INT32_MAX};
    for (int i = 0; i < 3; i++) {
        assert_string_equal(shuf_status_name((shuf_status)numbers[i]), "UNKNOWN");
        assert_int_not_equal(shuf_status_message((shuf_status)numbers[i])[0], '\0');
    }
}

static void fail_writes_and_returns(void **state)
{
    (void)state;
    struct shuf__error error = {0};
    assert_int_equal(shuf__fail(&error, SHUF_INVALID, "n %d: expected %s", 0, "more"),
                     SHUF_INVALID);
    assert_int_equal(error.status, SHUF_INVALID);
    assert_string_equal(error.text, "n 0: expected more");
}

static void fail_shortens_long_messages(void **state)
{
    (void)state;
    struct {
        struct shuf__error error;
        char after;
    } held = {.after = 'x'};
    char text[2 * SHUF__ERROR_TEXT];
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_int_equal(shuf__fail(&held.error, SHUF_IO, "%s", text), SHUF_IO);
    assert_int_equal(strlen(held.error.text), SHUF__ERROR_TEXT - 1);
    assert_int_equal(held.after, 'x');
}

static void messages_of_a_peer_are_made_printable(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"a \033[2Jb\n\t\x7f~", "a ?[2Jb???~"},
        {"\xc3\xa4 \xe2\x82\xac \xf0\x9f\x8e\xb2", "\xc3\xa4 \xe2\x82\xac \xf0\x9f\x8e\xb2"},
        {"\xc2\x9b"
         "2J \xc2\xa0",
         "??2J \xc2\xa0"}, /* U+009B (CSI) begins an escape sequence of a terminal */
        {"\x9b"
         "2J",
         "?2J"},
        /* longer encodings than UTF-8 allows */
        {"\xc0\x9b \xe0\x82\x9b \xf0\x80\x82\x9b", "?? ??? ????"},
        {"\xed\xa0\x80 \xf4\x90\x80\x80 \xff", "??? ???? ?"},
        {"\xe2\x82", "??"},
        {"\xc3", "?"},
        {"\xf0\x9f\x8e", "???"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[32];
        strcpy(text, rows[i][0]);
        shuf__make_printable(text);
        assert_string_equal(text, rows[i][1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_frozen),
        cmocka_unit_test(each_status_has_its_own_message),
        cmocka_unit_test(unknown_numbers_are_named_unknown),
        cmocka_unit_test(fail_writes_and_returns),
        cmocka_unit_test(fail_shortens_long_messages),
        cmocka_unit_test(messages_of_a_peer_are_made_printable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
