/* SPDX-License-Identifier: MIT
 *
 * `shuf-quality stream`: raw numbers get the verdict of their generator, bad input and wrong
 * options have clear errors, and reports, plots and bits are complete.
 */
#include "stream.h"
#include "support/cmocka_all.h"
#include "support/command.h"
#include "support/json.h"

#include "shuf/half.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static char directory[] = "/tmp/shuf-stream-XXXXXX";

/* Runs a script of sh in which $Q is shuf-quality and $D a directory. */
static int run_script(struct command *command, const char *text)
{
    const char *const argv[] = {"sh", "-c", text, NULL};
    return command_run(command, 0, argv);
}

static void expect_output(const char *text, int status, const char *out)
{
    struct command c;
    const int got = run_script(&c, text);
    if (got != status || !strstr(c.out.bytes, out))
        fail_msg("%s: exit status %d\n%s%s", text, got, c.out.bytes, c.err.bytes);
    command_free(&c);
}

static json_t *report_of(const char *text, int status)
{
    struct command c;
    const int got = run_script(&c, text);
    if (got != status)
        fail_msg("%s: exit status %d\n%s", text, got, c.err.bytes);
    free(c.err.bytes);
    return json_parse(c.out.bytes);
}

/* ---- Input ----------------------------------------------------------------------- */

enum { VALUES = 70 * SHUF__SUPERBLOCK };

static void write_value(FILE *to, shuf_dtype dtype, double value)
{
    const float single = (float)value;
    const uint16_t half = dtype == SHUF_F16 ? shuf_f16(single) : shuf_bf16(single);
    const void *const as[] = {
        [SHUF_F64] = &value, [SHUF_F32] = &single, [SHUF_F16] = &half, [SHUF_BF16] = &half};
    assert_int_equal(fwrite(as[dtype], shuf__dtype_bytes(dtype), 1, to), 1);
}

static void write_stream(const char *generator, shuf_dtype dtype)
{
    static double value[VALUES];
    char path[64];
    snprintf(path, sizeof path, "%s/raw", directory);
    FILE *to = fopen(path, "w");
    assert_non_null(to);
    shuf__stream_generator_find(generator)->fill(7, 3, dtype, 0, VALUES, value);
    for (size_t i = 0; i < VALUES; i++)
        write_value(to, dtype, value[i]);
    assert_int_equal(fclose(to), 0);
}

/* Checks that a file, standard input and the generator itself give the same report. */
static void expect_same_report(const char *generator, shuf_dtype dtype, const char *law,
                               const char *tests)
{
    static const char *const texts[] = {
        "$Q stream --generator $G --seed 7 --stream 3 --dtype $T --samples 71680 --json --tests $O",
        "$Q stream --in $D/raw --law $L --dtype $T --json --tests $O",
        "cat $D/raw | $Q stream --law $L --dtype $T --samples 71680 --json --tests $O",
    };
    json_t *report[3];
    write_stream(generator, dtype);
    assert_int_equal(setenv("G", generator, 1) | setenv("L", law, 1) | setenv("O", tests, 1) |
                         setenv("T", shuf__dtype_name(dtype), 1),
                     0);
    for (int i = 0; i < 3; i++) {
        report[i] = report_of(texts[i], 0);
        assert_true(json_array_size(json_member(report[i], "findings")) > 20);
        assert_int_equal(json_member_integer(report[i], "values"), VALUES);
        if (!json_equal(json_member(report[i], "findings"), json_member(report[0], "findings")))
            fail_msg("different findings: %s, %s", generator, texts[i]);
    }
    for (int i = 0; i < 3; i++)
        json_decref(report[i]);
}

static void input_and_generator_agree(void **state)
{
    (void)state;
    expect_same_report("gauss", SHUF_F64, "normal", "moments,bins,low-bits,repeats,pairs");
    expect_same_report("gauss", SHUF_F32, "normal", "moments,bins,low-bits,repeats,pairs");
    expect_same_report("gauss", SHUF_F16, "normal", "moments,bins,lags,tails");
    expect_same_report("gauss", SHUF_BF16, "normal", "moments,bins,lags,tails");
    expect_same_report("uniform", SHUF_F64, "uniform", "moments,bins,low-bits,lags");
    expect_same_report("uniform", SHUF_F32, "uniform", "moments,bins,low-bits,lags");
    expect_output("rm $D/raw", 0, "");
}

static void wrong_commands_are_explained(void **state)
{
    (void)state;
    static const struct {
        const char *script;
        int status;
        const char *words;
    } rows[] = {
        {"printf '\\0\\0\\200\\077\\0\\0\\0' | $Q stream --dtype f32", 65,
         "value 1: ends after 3 bytes: expected 4 bytes of f32"},
        {"printf '\\0\\0\\0' | $Q stream --dtype f16", 65,
         "value 1: ends after 1 byte: expected 2 bytes of f16"},
        {"printf '\\0\\0\\200\\077\\0\\0\\300\\177' | $Q stream --dtype f32", 65,
         "value 1: nan: expected a finite number"},
        {"printf '\\0\\374' | $Q stream --dtype f16", 65, "value 0: -inf: expected a finite"},
        {"printf '\\200\\177' | $Q stream --dtype bf16", 65, "value 0: inf: expected a finite"},
        {"(head -c 300000 /dev/zero; printf '\\0\\0\\0\\0\\0\\0\\360\\177') | $Q stream", 65,
         "value 37500: inf: expected a finite number"},
        {"printf '\\0\\0\\300\\077' | $Q stream --law uniform --dtype f32", 65,
         "value 0: 1.5: expected a number from 0 to 1"},
        {"printf '\\223NUMPY\\1\\0' | $Q stream", 65, "standard input: npy; expected raw values"},
        {"printf '\\223NUMPY\\1\\0' >$D/a.npy; $Q stream --in $D/a.npy --dtype f16; e=$?; "
         "rm $D/a.npy; exit $e",
         65, "/a.npy: npy; expected raw values"},
        {"$Q stream </dev/null", 65,
         "0 values: too few for any of the tests: expected more, 65536 for each"},
        {"head -c 8192 /dev/zero | $Q stream --tests walsh,pairs", 65, "1024 values: too few"},
        {"$Q stream --generator uniform --tests tails,walsh", 64,
         "--tests: expected one that judges f64 of the uniform law\n"},
        {"$Q stream --tests streams </dev/null", 64, "of the normal law, without a generator\n"},
        {"$Q stream --generator gauss --plot /nonexistent/x.svg", 73,
         "--plot /nonexistent/x.svg: No such file"},
        {"$Q stream --generator gauss --plot $D", 73, ": Is a directory"},
        {"$Q stream --generator gauss --plot ''", 73, "--plot '': No such file"},
        {"$Q stream --in /nonexistent/raw", 66, "--in /nonexistent/raw: No such file"},
        {"$Q stream --in /tmp", 74, "/tmp: Is a directory"},
        {"$Q stream --dtype f65 </dev/null", 64, "--dtype f65: expected f64, f32, f16 or bf16"},
        {"$Q stream --generator gaus", 64, "did you mean gauss?"},
        {"$Q stream --generator uniform --dtype f16", 64, "--dtype f16: expected f64 or f32"},
        {"$Q stream --generator gauss --in x", 64, "expected one of --generator and --in"},
        {"$Q stream --generator gauss --law normal", 64, "--law: expected --in beside it"},
        {"$Q stream --law cauchy </dev/null", 64, "--law cauchy: expected normal or uniform"},
        {"$Q stream --seed 3 </dev/null", 64, "--seed, --stream: expected --generator beside"},
        {"$Q stream --generator gauss --samples 0", 64, "--samples 0: expected 1 to"},
        {"$Q stream --generator gauss --tests bins,x", 64,
         "--tests bins,x: expected names from moments, bins,"},
        {"$Q stream --generator gauss --tests ''", 64, "--tests '': expected names from moments,"},
        {"$Q stream --generator gauss --alpha 2", 64, "--alpha 2: expected a number between"},
        {"$Q stream --generator polar --backend cuda", 64,
         "--backend cuda: expected --generator gauss or box-muller beside it\n"},
        {"$Q stream --as-bits </dev/null", 64, "--as-bits: expected --generator NAME and"},
        {"$Q stream --as-bits --generator gauss --dtype f32", 64, "and --dtype f64"},
        {"$Q stream --as-bits --generator gauss >/dev/full", 74, "standard output"},
        {"$Q stream now </dev/null", 64, "argument 'now'"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct command c;
        const int status = run_script(&c, rows[i].script);
        if (status != rows[i].status || !strstr(c.err.bytes, rows[i].words))
            fail_msg("%s: %d\n%s", rows[i].script, status, c.err.bytes);
        /* A single line. */
        assert_ptr_equal(strchr(c.err.bytes, '\n'), c.err.bytes + c.err.size - 1);
        command_free(&c);
    }
}

/* ---- Reports --------------------------------------------------------------------- */

static void report_has_every_figure(void **state)
{
    (void)state;
    json_t *r = report_of("$Q stream --generator irwin-hall --dtype f32 --samples 2e5 --seed 7 "
                          "--alpha 0.01 --json",
                          1);
    const json_t *source = json_member(r, "source"), *findings = json_member(r, "findings"), *f;
    const json_t *histogram = json_member(r, "histogram"), *count, *cell;
    size_t i, failed = 0, total = 0;
    double expected = 0;
    assert_string_equal(json_member_text(source, "generator"), "irwin-hall");
    assert_string_equal(json_member_text(source, "dtype"), "f32");
    assert_string_equal(json_member_text(source, "seed"), "7");
    assert_string_equal(json_member_text(r, "law"), "normal");
    assert_string_equal(json_member_text(r, "backend"), "cpu");
    assert_true(strlen(json_member_text(r, "commit")) > 0);
    assert_true(strlen(json_member_text(r, "device")) > 0);
    assert_int_equal(strlen(json_member_text(r, "date")), strlen("2026-11-22T16:34:20Z"));
    assert_int_equal(json_array_size(json_member(r, "command")), 13);
    assert_string_equal(json_string_value(json_array_get(json_member(r, "command"), 3)),
                        "irwin-hall");
    assert_true(json_real_value(json_member(r, "alpha")) == 0.01);
    assert_true(json_is_false(json_member(r, "passed")));
    json_array_foreach(findings, i, f)
    {
        const double p = json_number_value(json_member(f, "p"));
        assert_true(p >= 0 && p <= json_number_value(json_member(f, "p_holm")));
        failed += json_is_false(json_member(f, "passed"));
    }
    assert_int_equal(failed, json_member_integer(r, "failed"));
    count = json_member(histogram, "count");
    json_array_foreach(count, i, cell) total += (size_t)json_integer_value(cell);
    assert_int_equal(total, 200000);
    json_array_foreach(json_member(histogram, "expected"), i, cell) expected +=
        json_real_value(cell);
    assert_true(fabs(expected - 200000) < 1e-6);
    json_decref(r);
}

static void table_and_plot_are_written(void **state)
{
    (void)state;
    expect_output("$Q stream --generator gauss --dtype bf16 --samples 5e4 --seed 2", 0,
                  "gauss, bf16, seed 2, stream 0: 50000 values against the normal law\n");
    expect_output("$Q stream --generator icdf-table --samples 5e4 --tests low-bits", 1,
                  "\nFAILED: ");
    expect_output("head -c 8000000 /dev/zero | tr '\\0' '\\177' | $Q stream", 1, "\nFAILED: ");
    expect_output("head -c 8000000 /dev/zero | $Q stream", 1, "\nFAILED: ");
    expect_output("$Q list", 0, "box-muller-32");
    expect_output("$Q stream --help", 0, "--as-bits");
    for (const char *const *few = (const char *const[]){"1", "2", "999", "1025", NULL}; *few;
         few++) {
        assert_int_equal(setenv("N", *few, 1), 0);
        expect_output("$Q stream --generator polar --samples $N", 0, "\npassed: 0 of ");
    }
    expect_output(
        "$Q stream --generator polar --samples 999 2>&1 >/dev/null", 0,
        "shuf-quality stream: warning: 999 values: few to judge by; expected 1000 or more\n");
    expect_output("test -z \"$($Q stream --generator polar --samples 1000 2>&1 >/dev/null)\"", 0,
                  "");
    expect_output("PATH=/nonexistent $Q stream --generator polar --samples 5e4 --plot $D/x.svg", 73,
                  "\npassed: 0 of ");
    struct command c;
    const bool can_draw = run_script(&c, "gnuplot --version") == 0;
    command_free(&c);
    if (!can_draw)
        skip();
    expect_output("$Q stream --generator gauss --samples 5e4 --plot $D/x.svg >/dev/null && "
                  "grep -q '</svg>' $D/x.svg && grep -o 'values / expected' $D/x.svg",
                  0, "values / expected");
    expect_output("$Q stream --generator uniform --samples 5e4 --plot $D/x.svg >/dev/null && "
                  "grep -q '</svg>' $D/x.svg && rm $D/x.svg",
                  0, "");
}

/* The number of values that a message recommends is enough for every test. */
static void recommended_count_is_enough(void **state)
{
    (void)state;
    for (int i = 0; shuf__stream_tests[i]; i++) {
        const struct shuf__stream_test *test = shuf__stream_tests[i];
        const bool normal = test->of & SHUF__OF_NORMAL;
        assert_int_equal(setenv("O", test->name, 1), 0);
        assert_int_equal(setenv("G", normal ? "polar" : "uniform", 1), 0);
        assert_int_equal(setenv("T", strcmp(test->name, "ties") == 0 ? "f16" : "f64", 1), 0);
        json_decref(
            report_of("$Q stream --generator $G --dtype $T --samples 65536 --json --tests $O", 0));
    }
}

/* A value gives 32 bits: the probability that a value is smaller, as a fraction of 2^32. */
static void bits_come_from_values(void **state)
{
    (void)state;
    static double value[SHUF__SUPERBLOCK];
    struct command c;
    assert_int_equal(
        run_script(&c, "$Q stream --generator gauss --seed 7 --stream 3 --samples 1000 --as-bits"),
        0);
    assert_int_equal(c.out.size, 4000);
    shuf__stream_gauss.fill(7, 3, SHUF_F64, 0, SHUF__SUPERBLOCK, value);
    for (size_t i = 0; i < 1000; i++) {
        uint32_t word;
        memcpy(&word, c.out.bytes + 4 * i, sizeof word);
        const double below = 0.5 * erfc(-value[i] / sqrt(2)) * 0x1p32;
        assert_true(fabs((double)word + 0.5 - below) <= 0.5001);
    }
    command_free(&c);
}

/* The program waits for input that never comes, and SIGINT ends it. The program has one thread
 * here. With more, ThreadSanitizer would delay the signal while the main thread waits for another
 * one. */
static void interrupt_ends_wait_for_input(void **state)
{
    (void)state;
    const char *const argv[] = {
        "sh", "-c",
        "mkfifo $D/p; (head -c 1000000 /dev/zero; sleep 1; kill -INT $$) >$D/p & "
        "exec $Q stream --in $D/p --tests bins --threads 1 <>$D/p",
        NULL};
    struct command c;
    command_run(&c, 0, argv);
    assert_int_equal(c.status, 75);
    assert_non_null(strstr(c.err.bytes, "interrupted"));
    command_free(&c);
    expect_output("rm $D/p", 0, "");
}

static int set_up(void **state)
{
    (void)state;
    if (!mkdtemp(directory))
        return -1;
    return setenv("Q", QUALITY_PATH, 1) | setenv("D", directory, 1);
}

static int tear_down(void **state)
{
    (void)state;
    return rmdir(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(input_and_generator_agree),
        cmocka_unit_test(wrong_commands_are_explained),
        cmocka_unit_test(report_has_every_figure),
        cmocka_unit_test(table_and_plot_are_written),
        cmocka_unit_test(recommended_count_is_enough),
        cmocka_unit_test(bits_come_from_values),
        cmocka_unit_test(interrupt_ends_wait_for_input),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
