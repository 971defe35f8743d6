/* SPDX-License-Identifier: MIT
 *
 * The program shuf-quality. All its sources give equal reports. Bad input and wrong options have
 * clear errors. An interrupted run reports its findings so far. --plot writes an SVG file.
 */
#include "shuf/half.h"
#include "stream.h"
#include "support/cmocka_all.h"
#include "support/command.h"
#include "support/harness.h"
#include "support/shufctl.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static struct harness shufd;
static char directory[] = "/tmp/shuf-quality-XXXXXX";

/* Runs a script of sh in which $Q is shuf-quality, $C shufctl and $D a directory. */
static int run_script(struct command *command, unsigned flags, const char *text)
{
    const char *const argv[] = {"sh", "-c", text, NULL};
    return command_run(command, flags, argv);
}

static json_t *report_of(const char *text, int status)
{
    struct command c;
    const int got = run_script(&c, 0, text);
    if (got != status)
        fail_msg("%s: exit status %d\n%s", text, got, c.err.bytes);
    free(c.err.bytes);
    return json_parse(c.out.bytes);
}

/* ---- Sources ---- */

/* Both scripts report the same findings, and exit with `end`. */
static void expect_same_findings(const char *one, const char *other, int end)
{
    json_t *a = report_of(one, end), *b = report_of(other, end);
    const json_t *findings = json_member(a, "findings");
    assert_true(json_array_size(findings) > 10);
    if (!json_equal(findings, json_member(b, "findings")))
        fail_msg("different findings: %s; %s", one, other);
    json_decref(a);
    json_decref(b);
}

static void daemon_and_generator_agree(void **state)
{
    (void)state;
    expect_same_findings(
        "$Q judge --n 16 --samples 3001 --seed 9 --epoch 5 --json --generator philox24",
        "$Q judge --n 16 --samples 3001 --seed 9 --epoch 5 --json --daemon "
        "--algorithm philox24",
        1);
    expect_same_findings("$Q judge --n 100 --samples 300 --epoch 8 --json --generator primefold",
                         "$Q judge --n 100 --samples 300 --epoch 8 --json --daemon", 0);
    expect_same_findings(
        "$Q judge --n 100 --samples 300 --vary seed --json --generator lcg",
        "$Q judge --n 100 --samples 300 --vary seed --json --daemon --algorithm lcg", 1);
}

#define NO_RELATIVES                                                                       \
    "--tests places,differences,fixed-points,cycles,descents,inverse-descents,inversions," \
    "patterns,second-differences,mmd,rows "

static void raw_input_and_generator_agree(void **state)
{
    (void)state;
    expect_same_findings(
        "$Q judge --n 17 --samples 2500 --seed 7 --json --generator philox24 " NO_RELATIVES,
        "$C permute --n 17 --seed 7 --epochs 0:2500 --algorithm philox24 --format raw "
        "--out - | $Q judge --n 17 --json",
        0);
    expect_same_findings(
        "$Q judge --n 17 --samples 2500 --seed 7 --json --generator philox24 " NO_RELATIVES,
        "$C permute --n 17 --seed 7 --epochs 0:2600 --algorithm philox24 --dtype u64 "
        "--out $D/rows --format raw >/dev/null; "
        "$Q judge --n 17 --json --dtype u64 --in $D/rows --samples 2500; rm $D/rows",
        0);
}

/* Streams from the daemon have the same findings as those of shuf-quality's own generators. */
static void stream_input_and_generator_agree(void **state)
{
    (void)state;
    expect_same_findings(
        "$Q stream --generator gauss --dtype f64 --seed 7 --stream 3 --samples 50001 "
        "--tests moments,bins,low-bits --json",
        "$C gauss --count 50001 --seed 7 --stream 3 --format raw --out - | "
        "$Q stream --tests moments,bins,low-bits --json",
        0);
    expect_same_findings("$Q stream --generator gauss --dtype bf16 --seed 7 --samples 50001 "
                         "--tests moments,bins,tails --json",
                         "$C gauss --count 50001 --seed 7 --dtype bf16 --format raw --out - | "
                         "$Q stream --dtype bf16 --tests moments,bins,tails --json",
                         0);
    expect_same_findings("$Q stream --generator uniform --dtype f32 --seed 7 --samples 50001 "
                         "--tests moments,bins,low-bits --json",
                         "$C uniform --count 50001 --seed 7 --dtype f32 --format raw --out - | "
                         "$Q stream --law uniform --dtype f32 --tests moments,bins,low-bits --json",
                         0);
}

/* If n is a power of two, each value gives all its bits. At n = 48 a value below 32 gives 5 bits,
 * and a larger value gives none. */
static void bits_come_from_values(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "$Q bits --generator primefold --n 4Gi --seed 7 --take 3 --stride 1e9 --bytes 1200 >$D/a "
        "&& "
        "$C permute --n 4Gi --seed 7 --epochs 0:100 --count 3 --stride 1e9 --format raw --out - "
        ">$D/b && cmp $D/a $D/b",
        "$Q bits --generator lcg --n 16 --seed 7 --epoch 3 --take 16 --bytes 8 >$D/a && "
        "$C permute --n 16 --seed 7 --epoch 3 --algorithm lcg --format text --out - | "
        "awk '{ hex = sprintf(\"%x\", $1) hex } END { print hex }' >$D/b && "
        "od -An -tx8 $D/a | tr -d ' ' | cmp - $D/b",
        "$Q bits --generator primefold --n 48 --vary seed --take 12 --bytes 8 >$D/a && "
        "for s in 0 1 2; do $C permute --n 48 --seed $s --count 12 --format text --out -; done | "
        "awk '$1 < 32 { for (b = 0; b < 5; b++) if (n < 64) bits = int($1 / 2 ^ b) % 2 bits "
        "substr(\"\", n++) } END { print bits }' >$D/b && "
        "od -An -tu1 $D/a | awk '{ for (i = 1; i <= 8; i++) for (b = 0; b < 8; b++) "
        "bits = int($i / 2 ^ b) % 2 bits } END { print bits }' | cmp - $D/b",
        "test $($Q bits --generator philox24 --n 64Ki --take 4 --bytes 100003 | wc -c) = 100003",
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct command c;
        if (run_script(&c, 0, rows[i]) != 0)
            fail_msg("%s\n%s%s", rows[i], c.out.bytes, c.err.bytes);
        command_free(&c);
    }
    struct command c;
    assert_int_equal(run_script(&c, 0, "rm $D/a $D/b"), 0);
    command_free(&c);
}

/* ---- Mistakes ---- */

/* Six rounds of Philox leave a difference in whole words, seven do not. */
static void words_differ_by_rounds(void **state)
{
    (void)state;
    json_t *six = report_of("$Q words --rounds 6 --samples 1e5 --json", 1);
    json_t *seven = report_of("$Q words --rounds 7 --samples 1e5 --json", 0);
    assert_int_equal(json_array_size(json_member(six, "findings")), 16 * 8 * 32);
    assert_true(json_integer_value(json_member(six, "failed")) > 20);
    assert_int_equal(json_integer_value(json_member(seven, "failed")), 0);
    json_decref(six);
    json_decref(seven);
}

/* The findings do not depend on the threads. Orders with a fault fail. */
static void orders_are_judged(void **state)
{
    (void)state;
    expect_same_findings("$Q order --tests weighted --seed 7 --json",
                         "$Q order --tests weighted --seed 7 --threads 1 --json", 0);
    expect_same_findings("$Q order --tests weighted --fault draws-twice --json",
                         "$Q order --tests weighted --fault draws-twice --seed 0 --json", 1);
}

static void wrong_commands_are_explained(void **state)
{
    (void)state;
    static const struct {
        const char *script;
        int status;
        const char *words;
    } rows[] = {
        {"printf '\\0\\0\\0\\0\\0\\0\\0\\0' | $Q judge --n 2", 65,
         "row 0: value 0 at position 1 stands there for the second time"},
        {"printf '\\0\\0\\0\\0\\1\\0\\0\\0\\1\\0\\0\\0\\2\\0\\0\\0' | $Q judge --n 2", 65,
         "row 1: value 2 at position 1: expected a permutation of 0 to 1"},
        {"printf '\\0\\0\\0\\0\\1\\0\\0\\0\\1\\0\\0' | $Q judge --n 2", 65,
         "row 1: ends after 3 bytes, in value number 0: expected 2 values of 4 bytes"},
        {"printf '\\0\\0\\0\\0\\0\\0\\0\\1' | $Q judge --n 2 --dtype u64", 65,
         "row 0: value 72057594037927936 at position 0: expected a permutation of 0 to 1"},
        {"printf '\\223NUMPY\\1\\0' | $Q judge --n 2", 65, "standard input: npy; expected raw"},
        {"printf '\\223NUMPY\\1\\0' | $Q judge --n 2 --dtype u64", 65, "input: npy; expected raw"},
        {"$Q judge --n 2 </dev/null", 65, "0 rows: too few for any of the tests"},
        {"$Q judge --n 2 --in /nonexistent/rows", 66, "--in /nonexistent/rows: No such file"},
        {"$Q judge --n 2 --in /tmp", 74, "/tmp: Is a directory"},
        {"$Q judge --generator lcg", 64, "--n: missing"},
        {"$Q judge --generator lcg --n 1", 64, "--n 1: expected numbers from 2 to 268435456"},
        {"$Q judge --generator lcg --n 2:3", 64, "--n 2:3: expected one number"},
        {"$Q judge --generator lgc --n 2", 64,
         "--generator lgc: expected one of primefold, philox24,"},
        {"$Q judge --generator lcg --n 9 --rounds 3", 64, "expected a --generator that has rounds"},
        {"$Q judge --generator philox24 --n 9 --rounds 65", 64, "from 1 to 64"},
        {"$Q judge --generator philox24 --n 9 --rounds 1:3", 64, "expected one number"},
        {"$Q judge --daemon --generator lcg --n 2", 64, "expected one of --generator, --daemon"},
        {"$Q judge --n 2 --seed 3 </dev/null", 64, "expected --generator or --daemon beside"},
        {"$Q judge --n 2 --socket x </dev/null", 64, "expected --daemon beside"},
        {"$Q judge --n 2 --samples 1 </dev/null", 64, "--samples 1: expected 2 to"},
        {"$Q judge --n 1e6 --samples 1e9 --generator lcg", 64, "too many values"},
        {"$Q judge --n 2 --tests mmd,foo </dev/null", 64,
         "--tests mmd,foo: expected names from orders,"},
        {"$Q judge --n 2 --tests '' </dev/null", 64, "--tests '': expected names from orders,"},
        {"$Q rounds --generator lcg --n 9 --samples 50 --plot /nonexistent/x.svg", 73,
         "--plot /nonexistent/x.svg: No such file"},
        {"$Q judge --n 2 --alpha 0 </dev/null", 64, "--alpha 0: expected a number between"},
        {"$Q judge --n 2 --vary row --generator lcg", 64, "--vary row: expected epoch or seed"},
        {"$Q judge --n 2 now </dev/null", 64, "argument 'now'"},
        {"$Q suite", 64, "expected --generator NAME or --daemon"},
        {"$Q rounds --generator lcg --n 9 --samples 10", 64, "--samples 10: expected 50 or more"},
        {"$Q judge --n 9 --daemon --algorithm x", 64, "algorithm"},
        {"$Q judge --n 9 --daemon --socket /tmp/shuf-none", 69, "no daemon answers"},
        {"$Q plot $D/none.json --out $D/x.svg", 66, "none.json"},
        {"$Q plot $D/none.json", 64, "--out: missing"},
        {"$Q plot --out $D/x.svg", 64, "expected reports"},
        {"$Q bits --n 9", 64, "--generator: missing"},
        {"$Q bits --generator lcg", 64, "--n: missing"},
        {"$Q bits --generator x --n 9", 64, "--generator x: expected primefold, philox24 or lcg"},
        {"$Q bits --generator lcg --n 100", 64, "--n 100: expected a power of two from 16 on"},
        {"$Q bits --generator lcg --n 64 --take 65", 64,
         "--take 65 --stride 1: expected positions"},
        {"$Q bits --generator lcg --n 64 --take 2 --stride 64", 64, "below n, which is 64"},
        {"$Q bits --generator lcg --n 64 --take 5000", 64, "--take 5000: expected 1 to 4096"},
        {"$Q bits --generator lcg --n 64 >/dev/full", 74, "standard output"},
        {"$Q order --fault none", 64, "--fault none: expected one of windows-shared, "},
        {"$Q order --tests windows", 64, "expected names from windowed, mixture, weighted"},
        {"$Q words --rounds 17", 64, "--rounds 17: expected 1 to 16"},
        {"$Q list now", 64, "argument 'now'"},
        {"$Q bless", 64, "verb 'bless': no such verb; shuf-quality help lists them"},
        {"$Q jugde", 64, "verb 'jugde': no such verb; did you mean judge?"},
        {"$Q judge --sampels 3", 64, "unrecognized option '--sampels'; did you mean --samples?"},
        {"$Q bits", 64, "--generator, --n: missing; expected them, as in"},
        {"$Q judge --generator primfold --n 9", 64, "did you mean primefold?"},
        {"$Q list >/dev/full", 74, "standard output"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct command c;
        const int status = run_script(&c, 0, rows[i].script);
        if (status != rows[i].status || !strstr(c.err.bytes, rows[i].words))
            fail_msg("%s: %d\n%s", rows[i].script, status, c.err.bytes);
        assert_memory_equal(c.err.bytes + c.err.size - 1, "\n", 1);
        /* A single line. */
        assert_ptr_equal(strchr(c.err.bytes, '\n'), c.err.bytes + c.err.size - 1);
        command_free(&c);
    }
}

static void help_succeeds(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"$Q --help", "rounds"},           {"$Q judge --help", "--dtype"},
        {"$Q suite -h", "--n-list"},       {"$Q rounds --help", "--plot"},
        {"$Q plot --help", "REPORT"},      {"$Q bits --help", "--take"},
        {"$Q --version", "shuf-quality "}, {"$Q list", "second-differences"},
        {"$Q list", "fisher-yates"},       {"$Q list --help", "Names the tests"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct command c;
        assert_int_equal(run_script(&c, 0, rows[i][0]), 0);
        assert_non_null(strstr(c.out.bytes, rows[i][1]));
        command_free(&c);
    }
}

/* ---- Reports ---- */

static void report_has_every_figure(void **state)
{
    (void)state;
    json_t *r = report_of("$Q suite --generator lcg --n-list 8,16 --samples 2000 --seed 7 "
                          "--alpha 0.01 --json",
                          1);
    const json_t *source = json_member(r, "source"), *findings = json_member(r, "findings"), *f;
    size_t i, failed = 0, regions = 0;
    assert_string_equal(json_member_text(source, "generator"), "lcg");
    assert_string_equal(json_member_text(source, "seed"), "7");
    assert_string_equal(json_member_text(source, "vary"), "epoch");
    assert_true(json_real_value(json_member(r, "alpha")) == 0.01);
    assert_true(json_is_false(json_member(r, "passed")));
    assert_int_equal(json_array_size(json_member(r, "cases")), 2);
    json_array_foreach(findings, i, f)
    {
        const double p = json_number_value(json_member(f, "p"));
        assert_true(p >= 0 && p <= json_number_value(json_member(f, "p_holm")));
        failed += json_is_false(json_member(f, "passed"));
        regions += json_object_get(f, "hoeffding") != NULL;
    }
    assert_int_equal(failed, json_member_integer(r, "failed"));
    assert_int_equal(regions, 2);
    json_decref(r);
}

static void tests_option_selects_tests(void **state)
{
    (void)state;
    json_t *r = report_of("$Q judge --generator lcg --n 100 --samples 200 --tests mmd --json", 0);
    assert_int_equal(json_array_size(json_member(r, "findings")), 1);
    json_decref(r);
}

static void table_lists_findings(void **state)
{
    (void)state;
    struct command c;
    assert_int_equal(
        run_script(&c, 0, "$Q suite --generator philox24 --n-list 16,20 --samples 2000"), 1);
    assert_non_null(strstr(c.out.bytes, "philox24, 24 rounds, seed 0, epochs from 0\n"));
    assert_non_null(strstr(c.out.bytes, "parity"));
    assert_non_null(strstr(c.out.bytes, "\nFAILED: "));
    assert_null(strstr(c.out.bytes, "  ok\n")); /* only failures are listed */
    assert_int_equal(c.err.size, 0);
    command_free(&c);
}

static void interrupted_report_has_progress(void **state)
{
    (void)state;
    const char *const argv[] = {
        "sh", "-c", "exec $Q suite --generator fisher-yates --samples 1e6 --n-list 9,65536 --json",
        NULL};
    struct command c;
    command_start(&c, COMMAND_TERMINAL_ERR, argv);
    assert_true(command_await_err(&c, "\rn = 65536")); /* the other size is done */
    kill(c.pid, SIGINT);
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    /* sends the signal twice, as timeout(1) does: to the process and to its group */
    kill(c.pid, SIGINT);
    command_finish(&c);
    assert_int_equal(c.status, 75);
    /* the progress line, which only a terminal shows */
    assert_non_null(strstr(c.err.bytes, "\rn = "));
    assert_non_null(strstr(c.err.bytes, "interrupted"));
    free(c.err.bytes);
    json_t *r = json_parse(c.out.bytes);
    assert_true(json_is_true(json_member(r, "interrupted")));
    assert_true(json_array_size(json_member(r, "cases")) > 0);
    json_decref(r);
}

/* The machine's speed decides how many rows are tested before the signal. With alpha = 1e-12 no
 * number of rows fails by chance. */
static void interrupted_run_does_not_pass(void **state)
{
    (void)state;
    const char *const argv[] = {
        "sh", "-c",
        "exec $Q suite --generator fisher-yates --samples 1e6 --n-list 9,65536 --alpha 1e-12",
        NULL};
    struct command c;
    command_start(&c, COMMAND_TERMINAL_ERR, argv);
    assert_true(command_await_err(&c, "\rn = "));
    kill(c.pid, SIGINT);
    command_finish(&c);
    assert_int_equal(c.status, 75);
    assert_non_null(strstr(c.out.bytes, "\ninterrupted: 0 of "));
    assert_null(strstr(c.out.bytes, "passed"));
    command_free(&c);
}

/* The program waits for input that never comes, and SIGINT ends it. */
static void interrupt_ends_wait_for_input(void **state)
{
    (void)state;
    const char *const argv[] = {"sh", "-c", "mkfifo $D/p; exec $Q judge --n 9 --in $D/p <>$D/p",
                                NULL};
    struct command c;
    command_start(&c, 0, argv);
    nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
    kill(c.pid, SIGINT);
    command_finish(&c);
    assert_int_equal(c.status, 75);
    command_free(&c);
    assert_int_equal(run_script(&c, 0, "rm $D/p"), 0);
    command_free(&c);
}

static void rounds_report_first_good_count(void **state)
{
    (void)state;
    json_t *r = report_of("$Q rounds --generator philox24 --n 8,100 --rounds 1:24 --samples 4000 "
                          "--json",
                          0);
    const json_t *points = json_member(r, "points");
    assert_int_equal(json_array_size(points), 48);
    for (size_t i = 0; i < 48; i++) {
        const json_t *point = json_array_get(points, i), *normal = json_member(point, "normal");
        const double mmd = json_real_value(json_member(point, "mmd"));
        const double edge = json_real_value(json_member(normal, "high"));
        assert_int_equal(json_member_integer(point, "rounds"), i % 24 + 1);
        assert_true(edge < json_real_value(json_member(json_member(point, "hoeffding"), "high")));
        if (i % 24 < 2)
            assert_true(mmd > edge);
        if (i % 24 == 23)
            assert_true(mmd < 1.5 * edge && mmd > -1.5 * edge);
    }
    json_decref(r);
}

static void plots_are_written(void **state)
{
    (void)state;
    struct command c;
    struct stat status;
    char path[64];
    if (run_script(&c, 0, "gnuplot --version") != 0) {
        command_free(&c);
        skip();
    }
    command_free(&c);
    assert_int_equal(
        run_script(&c, 0,
                   "$Q rounds --generator lcg --n 8,100 --samples 500 --json "
                   "--plot \"$D/it's.svg\" >$D/lcg.json && "
                   "$Q rounds --generator philox24 --n 8 --rounds 1:4 --samples 500 --json "
                   ">$D/philox.json && "
                   "$Q plot --out $D/both.svg $D/lcg.json $D/philox.json && "
                   "grep -q '</svg>' $D/both.svg && grep -q lcg $D/both.svg"),
        0);
    assert_int_equal(c.err.size, 0);
    command_free(&c);
    snprintf(path, sizeof path, "%s/it's.svg", directory);
    assert_int_equal(stat(path, &status), 0);
    assert_true(status.st_size > 1000);
    assert_int_equal(run_script(&c, 0, "$Q plot --out /nonexistent/x.svg $D/lcg.json"), 73);
    assert_non_null(strstr(c.err.bytes, "/nonexistent/x.svg: No such file or directory\n"));
    assert_int_equal(c.out.size, 0);
    command_free(&c);
    assert_int_equal(run_script(&c, 0, "rm $D/*"), 0);
    command_free(&c);
}

/* Without gnuplot the report is still written, the error is one line, and the old file stays. */
static void plots_need_gnuplot(void **state)
{
    (void)state;
    struct command c;
    assert_int_equal(
        run_script(&c, 0,
                   "echo old >$D/x.svg; PATH=/nonexistent $Q rounds --generator philox24 "
                   "--n 8,16 --rounds 1:64 --samples 50 --plot $D/x.svg"),
        73);
    /* A report of many rounds names no round. */
    assert_memory_equal(c.out.bytes, "philox24, seed 0", 16);
    assert_non_null(strstr(c.out.bytes, "normal region"));
    assert_non_null(strstr(c.err.bytes, "x.svg: gnuplot: No such file or directory"));
    assert_ptr_equal(strchr(c.err.bytes, '\n'), c.err.bytes + c.err.size - 1);
    command_free(&c);
    assert_int_equal(run_script(&c, 0, "grep -qx old $D/x.svg && rm $D/x.svg"), 0);
    command_free(&c);
}

/* ---- Commands of shuf-quality stream ---- */

static void expect_output(const char *text, int status, const char *out)
{
    struct command c;
    const int got = run_script(&c, 0, text);
    if (got != status || !strstr(c.out.bytes, out))
        fail_msg("%s: exit status %d\n%s%s", text, got, c.out.bytes, c.err.bytes);
    command_free(&c);
}

/* ---- Input of shuf-quality stream ---- */

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

static void stream_wrong_commands_are_explained(void **state)
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
        const int status = run_script(&c, 0, rows[i].script);
        if (status != rows[i].status || !strstr(c.err.bytes, rows[i].words))
            fail_msg("%s: %d\n%s", rows[i].script, status, c.err.bytes);
        /* A single line. */
        assert_ptr_equal(strchr(c.err.bytes, '\n'), c.err.bytes + c.err.size - 1);
        command_free(&c);
    }
}

/* ---- Reports of shuf-quality stream ---- */

static void stream_report_has_every_figure(void **state)
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
    const bool can_draw = run_script(&c, 0, "gnuplot --version") == 0;
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
static void stream_bits_come_from_values(void **state)
{
    (void)state;
    static double value[SHUF__SUPERBLOCK];
    struct command c;
    assert_int_equal(
        run_script(&c, 0,
                   "$Q stream --generator gauss --seed 7 --stream 3 --samples 1000 --as-bits"),
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
static void stream_interrupt_ends_wait_for_input(void **state)
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
    if (!mkdtemp(directory) || !harness_start(&shufd, "cpu", NULL))
        return -1;
    return setenv("SHUFD_SOCKET", shufd.socket, 1) | setenv("Q", QUALITY_PATH, 1) |
           setenv("C", SHUFCTL_PATH, 1) | setenv("D", directory, 1);
}

static int tear_down(void **state)
{
    (void)state;
    const bool empty = rmdir(directory) == 0;
    return harness_stop(&shufd) && empty ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(daemon_and_generator_agree),
        cmocka_unit_test(raw_input_and_generator_agree),
        cmocka_unit_test(stream_input_and_generator_agree),
        cmocka_unit_test(bits_come_from_values),
        cmocka_unit_test(words_differ_by_rounds),
        cmocka_unit_test(orders_are_judged),
        cmocka_unit_test(wrong_commands_are_explained),
        cmocka_unit_test(help_succeeds),
        cmocka_unit_test(report_has_every_figure),
        cmocka_unit_test(tests_option_selects_tests),
        cmocka_unit_test(table_lists_findings),
        cmocka_unit_test(interrupted_report_has_progress),
        cmocka_unit_test(interrupted_run_does_not_pass),
        cmocka_unit_test(interrupt_ends_wait_for_input),
        cmocka_unit_test(rounds_report_first_good_count),
        cmocka_unit_test(plots_are_written),
        cmocka_unit_test(plots_need_gnuplot),
        cmocka_unit_test(input_and_generator_agree),
        cmocka_unit_test(stream_wrong_commands_are_explained),
        cmocka_unit_test(stream_report_has_every_figure),
        cmocka_unit_test(table_and_plot_are_written),
        cmocka_unit_test(recommended_count_is_enough),
        cmocka_unit_test(stream_bits_come_from_values),
        cmocka_unit_test(stream_interrupt_ends_wait_for_input),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
