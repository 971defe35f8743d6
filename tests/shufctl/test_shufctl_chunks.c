/* SPDX-License-Identifier: MIT
 *
 * `shufctl permute` and `shufctl index` with --chunks: the values of libshuf in each output, files
 * of sizes of each type, and the message of every mistake. No daemon runs.
 */
#include "shuf.h"
#include "support/cmocka_all.h"
#include "support/golden.h"
#include "support/json.h"
#include "support/shufctl.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_of_the_library),     cmocka_unit_test(epochs_are_rows),
        cmocka_unit_test(summaries_have_the_values), cmocka_unit_test(look_ups_of_the_library),
        cmocka_unit_test(sizes_of_each_type),        cmocka_unit_test(pipes_are_read),
        cmocka_unit_test(mistakes_of_files),         cmocka_unit_test(mistakes_of_options),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
