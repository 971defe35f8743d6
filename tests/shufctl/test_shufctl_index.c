/* SPDX-License-Identifier: MIT
 *
 * `shufctl index`: the output in each format, the input, and the message of every mistake. The
 * example program that needs no daemon. `shufctl permute` and `shufctl index` with --chunks: the
 * values of libshuf in each output, files of sizes of each type, and the message of every mistake;
 * no daemon runs.
 */
#include "shuf.h"
#include "shuf/primefold.h"
#include "support/cmocka_all.h"
#include "support/golden.h"
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

/* ---- Chunks, without a daemon ---- */

/* 300 000 values are more than the verb computes at once. */
enum { CHUNKS = 500, N = 300000 };
#define OPTIONS "--chunks %s --window 7 --seed 3 --epoch 5"

static uint64_t sizes[CHUNKS], values[N];
static shuf_chunks *order;

static FILE *new_file(const char *name)
{
    FILE *file = fopen(shufctl_path(name), "w");
    assert_non_null(file);
    return file;
}

static void write_text(const char *name, const char *text)
{
    FILE *file = new_file(name);
    fputs(text, file);
    fclose(file);
}

/* An .npy of `bytes` bytes of data. */
static void write_npy(const char *name, const char *type, const char *shape, const void *data,
                      size_t bytes)
{
    char dict[118];
    FILE *file = new_file(name);
    snprintf(dict, sizeof dict, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", type,
             shape);
    fprintf(file, "\x93NUMPY\x01%c\x76%c%-117s\n", 0, 0, dict);
    fwrite(data, 1, bytes, file);
    fclose(file);
}

static void make_order(uint64_t epoch)
{
    const shuf_chunks_request request = {3, epoch, sizes, CHUNKS, 7};
    shuf_chunks_free(order);
    assert_int_equal(shuf_chunks_make(&request, &order), SHUF_OK);
    assert_int_equal(shuf_chunks_length(order), N);
    assert_int_equal(shuf_chunks_fill(order, 0, N, 1, 1, SHUF_U64, values), SHUF_OK);
}

static int set_up(void **state)
{
    if (shufctl_set_up_alone(state))
        return 1;
    for (uint64_t k = 0; k < CHUNKS; k++)
        sizes[k] = 350 + k + (k < 250);
    write_npy("sizes.npy", "<i8", "(500,)", sizes, sizeof sizes);
    return 0;
}

static int tear_down(void **state)
{
    shuf_chunks_free(order);
    shufctl_remove("sizes.npy");
    return shufctl_tear_down_alone(state);
}

/* ---- Values ---- */

static void check_values(const char *options, uint64_t first, uint64_t stride, size_t count)
{
    size_t size;
    uint64_t *found = (uint64_t *)(void *)shufctl_succeed(
        &size, "permute " OPTIONS " --dtype u64 --out -%s", shufctl_path("sizes.npy"), options);
    assert_int_equal(size, count * sizeof *found);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(found[i], values[(first + i * stride) % N]);
    free(found);
}

static void values_of_the_library(void **state)
{
    (void)state;
    make_order(5);
    check_values("", 0, 1, N);
    check_values(" --offset 299990", 299990, 1, 10);
    check_values(" --offset 7 --stride 3 --count 70000", 7, 3, 70000);
    check_values(" --offset 300000", 0, 1, 0);
    check_values(" --rank 6 --world 7", 6, 7, 42858); /* 42 857 and a value from the front */
    check_values(" --rank 6 --world 7 --drop-last", 6, 7, 42857);
    check_values(" --rank 6 --world 7 --step 42850", 6 + 7 * 42850, 7, 8);
    check_values(" --rank 2 --world 7 --step 100 --count 9", 2 + 7 * 100, 7, 9);
}

static void epochs_are_rows(void **state)
{
    (void)state;
    size_t size;
    const char *path = shufctl_path("sizes.npy");
    uint32_t *found = (uint32_t *)(void *)shufctl_succeed(
        &size, "permute --chunks %s --window 7 --seed 3 --epochs 4:7 --offset 9 --count 5 --out -",
        path);
    assert_int_equal(size, 3 * 5 * sizeof *found);
    for (uint64_t row = 0; row < 3; row++) {
        make_order(4 + row);
        for (size_t i = 0; i < 5; i++)
            assert_int_equal(found[row * 5 + i], values[9 + i]);
    }
    free(found);
}

static void summaries_have_the_values(void **state)
{
    (void)state;
    char line[64];
    make_order(5);
    const char *path = shufctl_path("sizes.npy");
    char *text = shufctl_succeed(NULL, "permute " OPTIONS, path);
    assert_non_null(strstr(text, "windows     of 7 chunks, of 500 in all\n"));
    snprintf(line, sizeof line, "fingerprint 0x%016" PRIx64 "\n", golden_fingerprint(values, N));
    assert_non_null(strstr(text, line));
    free(text);
    json_t *object = json_parse(shufctl_succeed(NULL, "permute " OPTIONS " --json", path));
    assert_int_equal(json_member_integer(object, "n"), N);
    assert_int_equal(json_member_integer(object, "chunks"), CHUNKS);
    assert_int_equal(json_member_integer(object, "window"), 7);
    for (size_t i = 0; i < 4; i++) {
        const json_t *first = json_member(object, "first"), *last = json_member(object, "last");
        assert_int_equal(json_integer_value(json_array_get(first, i)), values[i]);
        assert_int_equal(json_integer_value(json_array_get(last, i)), values[N - 4 + i]);
    }
    json_decref(object);
}

static void look_ups_of_the_library(void **state)
{
    (void)state;
    char expected[128];
    make_order(5);
    const char *path = shufctl_path("sizes.npy");
    char *text = shufctl_succeed(NULL, "index " OPTIONS " --at 0,5,299999", path);
    snprintf(expected, sizeof expected, "%" PRIu64 "\n%" PRIu64 "\n%" PRIu64 "\n", values[0],
             values[5], values[N - 1]);
    assert_string_equal(text, expected);
    free(text);
    text = shufctl_succeed(NULL, "index " OPTIONS " --inverse --at %" PRIu64 ",%" PRIu64, path,
                           values[123], values[299999]);
    assert_string_equal(text, "123\n299999\n");
    free(text);
    json_t *object = json_parse(shufctl_succeed(NULL, "index " OPTIONS " --at 17 --json", path));
    assert_int_equal(json_integer_value(json_array_get(json_member(object, "values"), 0)),
                     values[17]);
    assert_int_equal(json_member_integer(object, "chunks"), CHUNKS);
    json_decref(object);
}

/* ---- Files of sizes ---- */

static void expect_sizes_3_1_300(const char *name)
{
    const uint64_t expected[] = {3, 1, 300};
    const shuf_chunks_request request = {7, 0, expected, 3, 1};
    shuf_chunks *chunks;
    uint64_t order_of[304];
    assert_int_equal(shuf_chunks_make(&request, &chunks), SHUF_OK);
    assert_int_equal(shuf_chunks_fill(chunks, 0, 304, 1, 1, SHUF_U64, order_of), SHUF_OK);
    shuf_chunks_free(chunks);
    size_t size;
    char *found = shufctl_succeed(
        &size, "permute --chunks %s --window 1 --seed 7 --dtype u64 --out -", shufctl_path(name));
    assert_int_equal(size, sizeof order_of);
    assert_memory_equal(found, order_of, size);
    free(found);
    shufctl_remove(name);
}

static void sizes_of_each_type(void **state)
{
    (void)state;
    const uint64_t wide[] = {3, 1, 300};
    const uint32_t narrow[] = {3, 1, 300};
    const uint16_t half[] = {3, 1, 300};
    const uint8_t big[] = {0, 3, 0, 1, 1, 44};
    write_npy("s", "<i8", "(3,)", wide, sizeof wide);
    expect_sizes_3_1_300("s");
    write_npy("s", "|u8", "(3,)", wide, sizeof wide);
    expect_sizes_3_1_300("s");
    write_npy("s", "<u4", "(3,)", narrow, sizeof narrow);
    expect_sizes_3_1_300("s");
    write_npy("s", "<i2", "(3,)", half, sizeof half);
    expect_sizes_3_1_300("s");
    write_npy("s", ">u2", "(3,)", big, sizeof big);
    expect_sizes_3_1_300("s");
    write_text("s", "3\n1\n300\n");
    expect_sizes_3_1_300("s");
    write_text("s", " 3, 1,\t\n\n 0.3k");
    expect_sizes_3_1_300("s");
}

static void pipes_are_read(void **state)
{
    (void)state;
    static const char *const names[] = {"-", "/dev/stdin"};
    uint64_t expected[7];
    const shuf_request request = {.permutation = {.n = 7, .seed = 7, .dtype = SHUF_U64}};
    assert_int_equal(shuf_host_fill(&request, 1, expected, sizeof expected), SHUF_OK);
    for (int n = 0; n < 2; n++) {
        struct command c;
        assert_int_equal(
            shufctl_script(
                &c, "echo 5 2 | $0 permute --chunks %s --window 2 --seed 7 --out - --format text",
                names[n]),
            0);
        char *rest = c.out.bytes;
        for (int i = 0; i < 7; i++)
            assert_int_equal(strtoull(rest, &rest, 10), expected[i]);
        command_free(&c);
    }
}

/* ---- Mistakes ---- */

static void mistakes_of_files(void **state)
{
    (void)state;
    static const struct {
        const char *type, *shape, *data;
        size_t bytes;
        const char *message;
    } rows[] = {
        {"<f8", "(1,)", "12345678", 8, "dtype '<f8': expected integers, as <i8"},
        {"|i3", "(1,)", "123", 3, "dtype '|i3': expected integers, as <i8"},
        {"|u1", "(2, 2)", "1234", 4, "shape: expected one dimension"},
        {"|u1", "(3,)", "12", 2, "cut off; expected the whole file"},
        {"|u1", "(3,)", "1234", 4, "more bytes than its shape has"},
        {"|u1", "(3,)", "1\0002", 3, "sizes[1] 0: expected at least 1"},
        {"|i1", "(2,)", "1\377", 2, "sizes[1]: negative, expected at least 1"},
        {"|u1", "(0,)", "", 0, "sizes: 0 of them, expected 1 to 2^24"},
        {"|u1", "(16777217,)", "", 0, "sizes: 16777217 of them, expected 1 to 2^24"},
        {NULL, NULL, "", 0, "sizes: 0 of them, expected 1 to 2^24"},
        {NULL, NULL, "5\n7 x\n", 0, "line 2 x: expected a whole number"},
        {NULL, NULL, "5 -7\n", 0, "line 1 -7: expected"},
        {NULL, NULL, "4Ei 1 1", 0, "sizes[1] 1: expected at most 0, because all chunks together"},
        {NULL, NULL, "\223NUMB", 0, "expected text, or a file that numpy.save writes"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char line[512], expected[512];
        if (rows[i].type)
            write_npy("s", rows[i].type, rows[i].shape, rows[i].data, rows[i].bytes);
        else
            write_text("s", rows[i].data);
        const char *path = shufctl_path("s");
        snprintf(line, sizeof line, "permute --chunks %s --window 2 --seed 7", path);
        snprintf(expected, sizeof expected, "--chunks %s: %s", path, rows[i].message);
        shufctl_fail(65, expected, line);
    }
    shufctl_remove("s");
}

static void mistakes_of_options(void **state)
{
    (void)state;
    static const struct shufctl_mistake mistakes[] = {
        {"permute --chunks /nowhere --window 2 --seed 7", 66,
         "--chunks /nowhere: cannot open: No such file or directory"},
        {"permute --chunks / --window 2 --seed 7", 65,
         "--chunks /: expected a regular file or a pipe"},
        {"permute --chunks /dev/zero --window 2 --seed 7", 65,
         "--chunks /dev/zero: expected a regular file or a pipe"},
        {"permute --chunks /nowhere --seed 7", 64, "--window: missing; --chunks needs it"},
        {"permute --chunks /nowhere --window 2", 64, "--seed 7"},
        {"permute --chunks /nowhere --window 0 --seed 7", 64, "--window 0: expected at least 1"},
        {"permute --chunks /nowhere --window 2 --seed 7 --n 5", 64, "--chunks: excludes --n"},
        {"permute --chunks /nowhere --window 2 --seed 7 --chunk 5", 64,
         "--chunks: excludes --chunk"},
        {"permute --chunks /nowhere --window 2 --key a", 64, "--chunks: excludes --key"},
        {"permute --chunks /nowhere --window 2 --seed 7 --algorithm lcg", 64,
         "--chunks: excludes --algorithm"},
        {"permute --chunks /nowhere --window 2 --seed 7 --prefetch", 64,
         "--chunks: excludes --prefetch"},
        {"permute --chunks /nowhere --window 2 --seed 7 --transport memfd", 64,
         "--chunks: excludes --transport"},
        {"index --chunks - --window 2 --seed 7 --at -", 64, "--chunks -: excludes --at -"},
        {"index --chunks /nowhere --window 2 --seed 7 --at 1", 66,
         "--chunks /nowhere: cannot open"},
        {"index --chunks /nowhere --seed 7 --at 1", 64, "--window: missing; --chunks needs it"},
        {"index --chunks /nowhere --window 0 --seed 7 --at 1", 64,
         "--window 0: expected at least 1"},
        {"index --chunks /nowhere --window 2 --seed 7 --at 1 --n 5", 64, "--chunks: excludes --n"},
    };
    shufctl_fail_each(mistakes, sizeof mistakes / sizeof *mistakes);
    char line[256];
    snprintf(line, sizeof line, "index " OPTIONS " --at 300000", shufctl_path("sizes.npy"));
    shufctl_fail(64, "at[0] 300000: expected less than n = 300000", line);
    snprintf(line, sizeof line, "permute " OPTIONS " --offset 300001", shufctl_path("sizes.npy"));
    shufctl_fail(64, "offset 300001: expected", line);
}

int main(int argc, char **argv)
{
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
    const struct CMUnitTest chunk_tests[] = {
        cmocka_unit_test(values_of_the_library),     cmocka_unit_test(epochs_are_rows),
        cmocka_unit_test(summaries_have_the_values), cmocka_unit_test(look_ups_of_the_library),
        cmocka_unit_test(sizes_of_each_type),        cmocka_unit_test(pipes_are_read),
        cmocka_unit_test(mistakes_of_files),         cmocka_unit_test(mistakes_of_options),
    };
    shufctl_backend = harness_backend_or_skip(argc, argv);
    return cmocka_run_group_tests(tests, shufctl_set_up, shufctl_tear_down) +
           cmocka_run_group_tests(chunk_tests, set_up, tear_down);
}
