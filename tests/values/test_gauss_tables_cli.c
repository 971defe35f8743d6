/* SPDX-License-Identifier: MIT
 *
 * The program gauss-tables. It proves the tables of the library, and reports mistakes. With the
 * argument "again" the test makes the same tables again, which takes long.
 */
#include "support/cmocka_all.h"
#include "support/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char directory[] = "/tmp/shuf-gauss-XXXXXX";

/* Runs a script of sh in which $G is gauss-tables, $H the committed header and $D a directory. */
static int run_script(struct command *command, const char *text)
{
    const char *const argv[] = {"sh", "-c", text, NULL};
    return command_run(command, 0, argv);
}

static void expect_refused(int status, const char *arguments, const char *words)
{
    struct command c;
    char text[256];
    snprintf(text, sizeof text, "$G %s", arguments);
    assert_int_equal(run_script(&c, text), status);
    assert_int_equal(c.out.size, 0);
    if (!strstr(c.err.bytes, words))
        fail_msg("%s: %s: expected '%s'", arguments, c.err.bytes, words);
    assert_ptr_equal(strchr(c.err.bytes, '\n'), c.err.bytes + c.err.size - 1);
    command_free(&c);
}

static void wrong_options_are_refused(void **state)
{
    (void)state;
    const char *const both = "expected --out, with --seed or not, or --check";
    expect_refused(64, "", both);
    expect_refused(64, "--seed 1", both);
    expect_refused(64, "--check --out $D/x", both);
    expect_refused(64, "--check --seed 1", both);
    expect_refused(64, "--check x", "argument 'x': expected none");
    expect_refused(64, "--out $D/x --seed -1", "--seed -1: ");
    expect_refused(73, "--out $D/none/x", "/none/x: No such file or directory");
    expect_refused(74, "--check >/dev/full", "standard output: cannot be written");
}

static void check_prints_the_proof(void **state)
{
    (void)state;
    struct command c;
    assert_int_equal(run_script(&c, "$G --check"), 0);
    assert_int_equal(c.err.size, 0);
    assert_ptr_equal(strstr(c.out.bytes, "z^2: "), c.out.bytes);
    assert_non_null(strstr(c.out.bytes, "\nN: values that the best test needs"));
    assert_non_null(strstr(c.out.bytes, "\n  k = 16 "));
    command_free(&c);
}

/* The comment in the header has the figures of the proof. */
static void header_contains_the_proof(void **state)
{
    (void)state;
    struct command c;
    assert_int_equal(run_script(&c, "$G --check | sed '/^$/,$d' >$D/proof && "
                                    "sed -n 's/^ \\*     //p' $H | sed -n '/^z^2/,$p' | "
                                    "diff - $D/proof && rm $D/proof"),
                     0);
    assert_int_equal(c.out.size, 0);
    command_free(&c);
}

/* The header is equal except for the line that names the compiler. */
static void generated_header_matches_committed(void **state)
{
    (void)state;
    struct command c;
    assert_int_equal(run_script(&c, "echo old >$D/h && $G --out $D/h >$D/proof && "
                                    "sed '6s/(.*, on .*/(/' $D/h >$D/new && "
                                    "sed '6s/(.*, on .*/(/' $H >$D/old && "
                                    "cmp $D/new $D/old && $G --check | cmp - $D/proof && "
                                    "rm $D/h $D/new $D/old $D/proof"),
                     0);
    assert_int_equal(c.out.size, 0);
    command_free(&c);
}

static int set_up(void **state)
{
    (void)state;
    if (!mkdtemp(directory))
        return -1;
    return setenv("G", GAUSS_TABLES_PATH, 1) | setenv("H", GAUSS_TABLE_H, 1) |
           setenv("D", directory, 1);
}

static int tear_down(void **state)
{
    (void)state;
    return rmdir(directory);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest quick[] = {
        cmocka_unit_test(wrong_options_are_refused),
        cmocka_unit_test(check_prints_the_proof),
        cmocka_unit_test(header_contains_the_proof),
    };
    const struct CMUnitTest again[] = {cmocka_unit_test(generated_header_matches_committed)};
    if (argc > 1 && strcmp(argv[1], "again") == 0)
        return cmocka_run_group_tests(again, set_up, tear_down);
    return cmocka_run_group_tests(quick, set_up, tear_down);
}
