/* SPDX-License-Identifier: MIT
 *
 * `shufctl index`: the output in each format, the input, and the message of every mistake. Also
 * tests the example program that needs no daemon.
 */
#include "shuf/primefold.h"
#include "support/cmocka_all.h"
#include "support/json.h"
#include "support/shufctl.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static uint64_t value_at(uint64_t n, uint64_t epoch, uint64_t position)
{
    shuf_primefold f = shuf_primefold_make(n, 7, epoch);
    return shuf_primefold_forward(&f, position);
}

static void one_value_on_each_line(void **state)
{
    (void)state;
    char expected[128];
    const uint64_t n = 1000000000;
    snprintf(expected, sizeof expected, "%" PRIu64 "\n%" PRIu64 "\n%" PRIu64 "\n",
             value_at(n, 3, 0), value_at(n, 3, 5), value_at(n, 3, 100000000));
    static const char *const forms[] = {
        "--at 0,5,1e8", "--at 0 --at 5,1e8", "--at 0x0,5,100_000_000 --algorithm primefold",
        "--at 0,5,1e8 --out - --format text", "--at 0,5,1e8 --out /dev/stdout"};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        char *text = shufctl_succeed(NULL, "index --n 1e9 --seed 7 --epoch 3 %s", forms[i]);
        assert_string_equal(text, expected);
        free(text);
    }
}

static void look_ups_match_permute(void **state)
{
    (void)state;
    struct command c;
    static const int sizes[] = {1, 64, 65, 1000, 1000, 1000, 20000, 20000, 20000, 16384, 32768};
    static const char *const names[] = {"primefold", "philox24", "lcg"};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        assert_int_equal(
            shufctl_script(&c,
                           "cd %s && N=\"--n %d --seed 7 --epoch 2 --algorithm %s\" && "
                           "\"$0\" permute $N --out v.txt >/dev/null && seq 0 %d >p && "
                           "\"$0\" index $N --at - <p | cmp - v.txt && "
                           "\"$0\" index $N --at - --inverse <v.txt | cmp - p",
                           shufctl_directory, sizes[i], names[i % 3], sizes[i] - 1),
            0);
        assert_int_equal(c.out.size + c.err.size, 0);
        command_free(&c);
    }
    shufctl_remove("v.txt");
    shufctl_remove("p");
}

static void positions_from_standard_input(void **state)
{
    (void)state;
    struct command c;
    assert_int_equal(shufctl_script(&c, "printf ' 0 1e1\\t0x5\\r\\n\\n  7' | "
                                        "\"$0\" index --n 100 --seed 7 --at - | tr '\\n' ' '"),
                     0);
    char expected[64];
    snprintf(expected, sizeof expected, "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " ",
             value_at(100, 0, 0), value_at(100, 0, 10), value_at(100, 0, 5), value_at(100, 0, 7));
    assert_string_equal(c.out.bytes, expected);
    command_free(&c);
    assert_int_equal(shufctl_script(&c, "\"$0\" index --n 100 --seed 7 --at - </dev/null"), 0);
    assert_int_equal(c.out.size + c.err.size, 0);
    command_free(&c);
}

static void check_json(const char *direction, bool inverse)
{
    json_t *object = json_parse(
        shufctl_succeed(NULL,
                        "index --n 4611686018427387904 --seed 7 --epoch 18446744073709551615 "
                        "--at 4611686018427387903,3 --json%s",
                        direction));
    shuf_primefold f = shuf_primefold_make(UINT64_C(1) << 62, 7, UINT64_MAX);
    shuf_primefold_make_inverse(&f);
    assert_int_equal(json_member_integer(object, "n"), UINT64_C(1) << 62);
    assert_string_equal(json_member_text(object, "seed"), "7");
    assert_string_equal(json_member_text(object, "epoch"), "18446744073709551615");
    assert_int_equal(json_is_true(json_member(object, "inverse")), inverse);
    assert_true(json_is_real(json_member(object, "total_seconds")));
    const json_t *positions = json_member(object, "positions");
    const json_t *values = json_member(object, "values");
    const json_t *inputs = inverse ? values : positions;
    assert_int_equal(json_array_size(positions), 2);
    assert_int_equal(json_array_size(values), 2);
    assert_int_equal(json_integer_value(json_array_get(inputs, 0)), (UINT64_C(1) << 62) - 1);
    assert_int_equal(json_integer_value(json_array_get(inputs, 1)), 3);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(
            json_integer_value(json_array_get(values, i)),
            shuf_primefold_forward(&f, (uint64_t)json_integer_value(json_array_get(positions, i))));
    json_decref(object);
}

static void values_as_json(void **state)
{
    (void)state;
    check_json("", false);
    check_json(" --inverse --algorithm primefold", true);
}

static void values_in_files(void **state)
{
    (void)state;
    size_t size;
    const uint64_t expected[2] = {value_at(1000, 0, 3), value_at(1000, 0, 999)};
    static const struct {
        const char *name, *format;
        size_t head;
    } rows[] = {{"v.npy", "", 128}, {"v", " --format raw", 0}, {"w", " --format npy", 128}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        free(shufctl_succeed(&size, "index --n 1000 --seed 7 --at 3,999 --out %s%s",
                             shufctl_path(rows[i].name), rows[i].format));
        assert_int_equal(size, 0);
        char *bytes = shufctl_read(shufctl_path(rows[i].name), &size);
        assert_int_equal(size, rows[i].head + sizeof expected);
        assert_memory_equal(bytes + rows[i].head, expected, sizeof expected);
        if (rows[i].head) {
            assert_memory_equal(bytes, "\x93NUMPY\x01\x00", 8);
            assert_non_null(strstr(bytes + 10, "'descr': '<u8'"));
            assert_non_null(strstr(bytes + 10, "'shape': (2,)"));
        }
        free(bytes);
        shufctl_remove(rows[i].name);
    }
}

static void wrong_options_are_explained(void **state)
{
    (void)state;
#define RIGHT "index --n 10 --seed 7 --at 1 "
#define NOBODY "/tmp/shuf-none" /* a wrong option is reported first, before the missing daemon */
    static const struct shufctl_mistake rows[] = {
        {"index --seed 7 --at 1", 64, "--n: missing; expected it, as in --n 1e9"},
        {"index --n 10 --at 1", 64, "--seed: missing"},
        {"index --n 10 --seed 7", 64, "--at: missing; expected it, as in --at 0,5,1e8"},
        {"index --n 0 --seed 7 --at 0", 64, "--n 0: expected 1 to 2^62"},
        {"index --n 1e19 --seed 7 --at 0", 64, "--n 1e19: expected 1 to 2^62"},
        {"index --n ten --seed 7 --at 0", 64, "--n ten: expected a whole number"},
        {"index --n 10 --seed 7 --at 10", 64, "at[0] 10: expected less than n = 10"},
        {"index --n 1000 --seed 7 --at 1,2,3,1e3", 64, "at[3] 1000: expected less than n = 1000"},
        {"index --n 10 --seed 7 --at 1,10 --inverse", 64, "at[1] 10: expected less than n = 10"},
        {"index --n 10 --seed 7 --at=", 64, "--at: number 1 of the list is empty"},
        {"index --n 10 --seed 7 --at 1,,2", 64, "--at: number 2 of the list is empty"},
        {"index --n 10 --seed 7 --at 1,2,", 64, "--at: number 3 of the list is empty"},
        {"index --n 10 --seed 7 --at 1,-2", 64, "--at -2: expected 0 to 2^64 - 1"},
        {"index --n 10 --seed 7 --at 0:5", 64, "--at 0:5: expected numbers with commas"},
        {"index --n 10 --seed 7 --at 1,2-5", 64, "--at 2-5: expected numbers with commas"},
        {"index --n 10 --seed 7 --at 1e-5", 64, "--at 1e-5: expected a whole number"},
        {"index --n 10 --seed 7 --at 1,x", 64, "--at x: expected a whole number"},
        {"index --n 10 --seed 7 --at - --at 1", 64, "--at -: excludes other positions"},
        {RIGHT "--epoch x", 64, "--epoch x: expected a whole number"},
        {RIGHT "--epochs 0:3", 64, "--epochs: index takes only one epoch, expected --epoch"},
        {RIGHT "--dtype u32", 64, "--dtype: index always gives u64, expected no --dtype"},
        {RIGHT "--offset 3", 64, "expected no slice or shard"},
        {RIGHT "--count 3", 64, "expected no slice or shard"},
        {RIGHT "--stride 3", 64, "expected no slice or shard"},
        {RIGHT "--rank 0 --world 2", 64,
         "no slice or shard; rank R of WORLD has position R + K * WORLD at step K"},
        {RIGHT "--inverse --rank 0 --world 2", 64,
         "rank p % WORLD has position p, at step p / WORLD"},
        {RIGHT "--drop-last", 64, "expected no slice or shard"},
        {RIGHT "--step 3", 64, "expected no slice or shard"},
        {RIGHT "--inverse --offset 3", 64,
         "the inverse of a slice is not defined: expected the whole permutation"},
        {RIGHT "--world 2 --inverse", 64, "the inverse of a slice is not defined"},
        {RIGHT "--algorithm sattolo", 64,
         "algorithm \"sattolo\": expected primefold, philox24 or lcg"},
        {RIGHT "--algorithm=", 64, "--algorithm \"\": expected primefold, philox24 or lcg"},
        {"index --n 1e11 --seed 7 --at 1 --algorithm philox24", 64,
         "n 100000000000: expected at most 2^36 or a power of two for an index with philox24"},
        {"index --n 4611686018427387905 --seed 7 --at 0", 64,
         "--n 4611686018427387905: expected 1 to 2^62"},
        {"index --n 10 --seed 7 --at 1.5", 64, "--at 1.5: expected a whole number"},
        {"index --n 10 --seed 7 --at 1e20", 64, "--at 1e20: expected 0 to 2^64 - 1"},
        {"index --n 10 --seed 7 --at 1,10 --socket " NOBODY, 64,
         "at[1] 10: expected less than n = 10"},
        {"index --n 10 --seed 7 --at 10 --inverse --socket " NOBODY, 64,
         "at[0] 10: expected less than n = 10"},
        {"index --n 9 --seed 7 --at 0 --out=", 64,
         "--out '': expected a file, or - for standard output"},
        {"index --n 0 --seed 7 --at 0 --socket " NOBODY, 64, "--n 0: expected 1 to 2^62"},
        {"index --n 1e19 --seed 7 --at 0 --socket " NOBODY, 64, "--n 1e19: expected 1 to 2^62"},
        {"permute --n 10 --seed 7 --inverse", 64, "--at, --inverse: permute computes whole"},
        {"permute --n 10 --seed 7 --inverse --offset 3 --count 2", 64, "expected shufctl index"},
        {"permute --n 10 --seed 7 --at 3", 64, "expected shufctl index"},
        {RIGHT "--format xml", 64, "--format xml: expected npy, raw, text or csv"},
        {RIGHT "--format=", 64, "--format '': expected npy, raw, text or csv"},
        {RIGHT "--json --out v", 64, "--json: excludes --out and --format"},
        {RIGHT "--json --format text", 64, "--json: excludes --out and --format"},
        {RIGHT "--transport memfd", 64, "unrecognized option '--transport'"},
        {RIGHT "3", 64, "argument '3'"},
        {RIGHT "--socket /tmp/shuf-none", 69, "start one: shufd --socket /tmp/shuf-none &\n"},
        {RIGHT "--out /nonexistent/x.npy", 73, "/nonexistent/x.npy: cannot create"},
        {RIGHT "--out /dev/full", 74, "/dev/full: No space left on device"},
        {RIGHT "--out /dev/full --format raw", 74, "/dev/full: No space left on device"},
    };
    shufctl_fail_each(rows, sizeof rows / sizeof *rows);
}

static void wrong_standard_input_is_explained(void **state)
{
    (void)state;
    static const struct {
        const char *input;
        int status;
        const char *words;
    } rows[] = {
        {"printf '1 2\\n3 x\\n' |", 64, "--at -, line 2 x: expected a whole number"},
        {"printf '1,2\\n' |", 64, "--at -, line 1 1,2: expected a whole number"},
        {"printf '1\\0002\\n' |", 64, "--at -, line 1: a byte of 0, expected text"},
        {"printf '1\\n\\n10' |", 64, "at[1] 10: expected less than n = 10"},
        {"printf '1\\n2 0.5\\n' |", 64, "--at -, line 2 0.5: expected a whole number"},
        {"printf '1\\n-3\\n' |", 64, "--at -, line 2 -3: expected 0 to"},
        {"exec <&-;", 74, "--at -: cannot read: Bad file descriptor"},
        {"exec </;", 74, "--at -: cannot read: Is a directory"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct command c;
        int status = shufctl_script(&c, "%s \"$0\" index --n 10 --seed 7 --at -", rows[i].input);
        if (status != rows[i].status || !strstr(c.err.bytes, rows[i].words))
            fprintf(stderr, "%s: %d\n%s", rows[i].input, status, c.err.bytes);
        assert_int_equal(status, rows[i].status);
        assert_non_null(strstr(c.err.bytes, rows[i].words));
        assert_int_equal(c.out.size, 0);
        command_free(&c);
    }
}

static void help_lists_options(void **state)
{
    (void)state;
    static const char *const forms[] = {"help index", "index --help", "index -h"};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        char *text = shufctl_succeed(NULL, "%s", forms[i]);
        assert_non_null(strstr(text, "--inverse"));
        assert_null(strstr(text, "--drop-last"));
        free(text);
    }
}

static void full_standard_output_is_an_error(void **state)
{
    (void)state;
    struct command c;
    static const char *const forms[] = {"", "--json"};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(
            shufctl_script(&c, "\"$0\" index --n 10 --seed 7 --at 1 %s >/dev/full", forms[i]), 74);
        assert_non_null(strstr(c.err.bytes, "No space left on device"));
        command_free(&c);
    }
    assert_int_equal(
        shufctl_run(&c, COMMAND_TERMINAL_OUT, "index --n 10 --seed 7 --at 1 --format raw"), 64);
    assert_non_null(strstr(c.err.bytes, "binary to a terminal"));
    command_free(&c);
}

/* A signal ends shufctl while it waits for positions from a pipe. */
static void signals_end_wait_for_input(void **state)
{
    (void)state;
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    int fds[2], saved_stdin = dup(STDIN_FILENO);
    assert_int_equal(pipe(fds), 0);
    dup2(fds[0], STDIN_FILENO);
    for (int i = 0; i < 3; i++) {
        struct command c;
        shufctl_start(&c, 0, "index --n 10 --seed 7 --at - --out %s", shufctl_path("v.npy"));
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
        kill(c.pid, signals[i]);
        command_finish(&c);
        assert_int_equal(c.status, 128 + signals[i]);
        assert_int_equal(shufctl_count_files(), 0);
        command_free(&c);
    }
    dup2(saved_stdin, STDIN_FILENO);
    close(saved_stdin);
    close(fds[0]);
    close(fds[1]);
}

/* The example computes the same values as the daemon. */
static void example_matches_daemon(void **state)
{
    (void)state;
    struct command c;
    const char *const argv[] = {LOOKUP_PATH, "1e9", "7", "3", "1", "8", NULL};
    const char *const wrong[] = {LOOKUP_PATH, "10", "7", "0", "8", "8", NULL};
    char *text = shufctl_succeed(NULL, "index --n 1e9 --seed 7 --epoch 3 --at 1,9,17,25,33");
    assert_int_equal(command_run(&c, 0, argv), 0);
    assert_string_equal(c.out.bytes, text);
    command_free(&c);
    assert_int_equal(command_run(&c, 0, wrong), 1);
    assert_non_null(strstr(c.err.bytes, "RANK below WORLD"));
    command_free(&c);
    free(text);
}

int main(int argc, char **argv)
{
    shufctl_backend = harness_backend_or_skip(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_value_on_each_line),
        cmocka_unit_test(look_ups_match_permute),
        cmocka_unit_test(positions_from_standard_input),
        cmocka_unit_test(values_as_json),
        cmocka_unit_test(values_in_files),
        cmocka_unit_test(wrong_options_are_explained),
        cmocka_unit_test(wrong_standard_input_is_explained),
        cmocka_unit_test(help_lists_options),
        cmocka_unit_test(full_standard_output_is_an_error),
        cmocka_unit_test(signals_end_wait_for_input),
        cmocka_unit_test(example_matches_daemon),
    };
    return cmocka_run_group_tests(tests, shufctl_set_up, shufctl_tear_down);
}
