/* SPDX-License-Identifier: MIT
 *
 * `shufctl mix`: the golden table, the places of libshuf in each output, and the message of every
 * mistake. No daemon runs.
 */
#include "shuf.h"
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

/* ---- The golden table ---- */

enum { GOLDEN_ROWS = 10, LISTS = 4 };

/* The text of a command line that grows. */
struct line {
    char *text;
    size_t size;
    FILE *to;
};

static void line_begin(struct line *line)
{
    line->to = open_memstream(&line->text, &line->size);
    assert_non_null(line->to);
}

/* Reads `stages` of `sources` weights as options. */
static void read_stages(char **row, FILE *to, uint64_t sources, uint64_t stages)
{
    for (uint64_t s = 0; s < stages; s++) {
        const uint64_t first = golden_number(row);
        if (s == 0)
            fputs(" --weights ", to);
        else
            fprintf(to, " --stage %" PRIu64 ":", first);
        for (uint64_t i = 0; i < sources; i++)
            fprintf(to, "%s%" PRIu64, i ? "," : "", golden_number(row));
    }
}

/* The options of a row, with blanks between them. */
static void read_options(char **row, struct line *line)
{
    static const char *const names[LISTS] = {"sizes", "epochs", "chunk", "window"};
    static uint64_t lists[LISTS][SHUF_SOURCES_MOST];
    const uint64_t block = golden_number(row), seed = golden_number(row),
                   sources = golden_number(row);
    assert_in_range(sources, 1, SHUF_SOURCES_MOST);
    line_begin(line);
    fprintf(line->to, "mix --block %" PRIu64 " --seed %" PRIu64, block, seed);
    for (uint64_t i = 0; i < sources; i++)
        for (int l = 0; l < LISTS; l++)
            lists[l][i] = golden_number(row);
    for (int l = 0; l < LISTS; l++) {
        fprintf(line->to, " --%s ", names[l]);
        for (uint64_t i = 0; i < sources; i++)
            fprintf(line->to, "%s%" PRIu64, i ? "," : "", lists[l][i]);
    }
    const uint64_t stages = golden_number(row);
    read_stages(row, line->to, sources, stages);
    fclose(line->to);
}

/* One place. The shell divides the options, which are too many for shufctl_run(). */
static void check_place(const char *options, uint64_t position, const uint64_t place[3])
{
    struct command c;
    char expected[128];
    snprintf(expected, sizeof expected,
             "POSITION            SOURCE EPOCH        RECORD\n%-19" PRIu64 " %-6" PRIu64
             " %-12" PRIu64 " %" PRIu64 "\n",
             position, place[0], place[1], place[2]);
    char text[32];
    snprintf(text, sizeof text, "%" PRIu64, position);
    const char *const words[] = {
        "sh", "-c", "exec \"$0\" $1 --count 1 --offset $2", SHUFCTL_PATH, options, text, NULL};
    command_run(&c, 0, words);
    if (c.status != 0 || strcmp(c.out.bytes, expected) != 0)
        fail_msg("%.300s --offset %" PRIu64 ": %d\n%s%sexpected\n%s", options, position, c.status,
                 c.err.bytes, c.out.bytes, expected);
    command_free(&c);
}

static void golden_table(void **state)
{
    (void)state;
    FILE *table = golden_open("mixture.txt");
    int rows = 0;
    for (char *row; (row = golden_line(table)); rows++) {
        struct line line;
        read_options(&row, &line);
        golden_number(&row); /* the length */
        for (int number = 0; strpbrk(row, "0123456789"); number++) {
            const uint64_t position = golden_number(&row);
            uint64_t place[3];
            for (int column = 0; column < 3; column++)
                place[column] = golden_number(&row);
            if (number % GOLDEN_STEP == 0)
                check_place(line.text, position, place);
        }
        free(line.text);
    }
    fclose(table);
    assert_int_equal(rows, GOLDEN_ROWS);
}

/* ---- The same as the library ---- */

/* 150 000 places are more than the verb computes at once. */
#define OPTIONS                                                                              \
    "mix --sizes=1000,200,77 --weights=0.5,1/4,0.25 --seed=3 --epochs=0,2,0 --chunk=0,10,0 " \
    "--window=0,7,0 --block=64 --stage=500:0.2,0.6,0.2"
enum { COUNT = 150000, STRIDE = 3, OFFSET = 100 };

struct places {
    uint64_t index[COUNT], epoch[COUNT], record[COUNT];
    uint32_t source[COUNT];
};

static struct places places;
static shuf_mixture *mixture;

static void make_mixture(void)
{
    const shuf_source sources[] = {{1000, 0, 0, 0}, {200, 2, 10, 7}, {77, 0, 0, 0}};
    const uint64_t weights[2][3] = {{2, 1, 1}, {1, 3, 1}};
    const shuf_stage stages[] = {{0, weights[0]}, {500, weights[1]}};
    const shuf_mixture_request request = {.seed = 3,
                                          .block = 64,
                                          .sources = sources,
                                          .source_count = 3,
                                          .stages = stages,
                                          .stage_count = 2};
    const shuf_mixed out = {places.index, places.source, places.epoch, places.record};
    assert_int_equal(shuf_mixture_make(&request, &mixture), SHUF_OK);
    assert_int_equal(shuf_mixture_fill(mixture, OFFSET, COUNT, STRIDE, 1, &out), SHUF_OK);
}

static void table_has_places_of_the_library(void **state)
{
    (void)state;
    char *text =
        shufctl_succeed(NULL, OPTIONS " --offset %d --count %d --stride %d", OFFSET, COUNT, STRIDE);
    char *rest = strchr(text, '\n');
    for (int i = 0; i < COUNT; i++) {
        uint64_t row[4];
        for (int column = 0; column < 4; column++)
            row[column] = golden_number(&rest);
        assert_int_equal(row[0], OFFSET + i * STRIDE);
        assert_int_equal(row[1], places.source[i]);
        assert_int_equal(row[2], places.epoch[i]);
        assert_int_equal(row[3], places.record[i]);
    }
    assert_string_equal(rest, "\n");
    free(text);
}

static void check_text(const char *text)
{
    char *rest = (char *)text;
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(golden_number(&rest), places.index[i]);
    assert_string_equal(rest, "\n");
}

static void files_have_indices_of_the_library(void **state)
{
    (void)state;
    static const struct {
        const char *name, *format;
        size_t head;
        bool text;
    } rows[] = {{"v.npy", "", 128, false},
                {"v.bin", "", 0, false},
                {"v.txt", "", 0, true},
                {"v.csv", "", 0, true},
                {"v", " --format raw", 0, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t size;
        char *summary =
            shufctl_succeed(&size, OPTIONS " --offset %d --count %d --stride %d --out %s%s", OFFSET,
                            COUNT, STRIDE, shufctl_path(rows[i].name), rows[i].format);
        assert_non_null(strstr(summary, rows[i].name));
        assert_non_null(strstr(summary, "\nshape       150000 u64 (1.20 MB)\n"));
        free(summary);
        free(shufctl_succeed(&size, OPTIONS " --offset %d --count %d --stride %d --out %s%s -q",
                             OFFSET, COUNT, STRIDE, shufctl_path(rows[i].name), rows[i].format));
        assert_int_equal(size, 0);
        char *bytes = shufctl_read(shufctl_path(rows[i].name), &size);
        if (rows[i].text) {
            check_text(bytes);
        } else {
            assert_int_equal(size, rows[i].head + sizeof places.index);
            assert_memory_equal(bytes + rows[i].head, places.index, sizeof places.index);
        }
        if (rows[i].head) {
            assert_non_null(strstr(bytes + 10, "'descr': '<u8'"));
            assert_non_null(strstr(bytes + 10, "'shape': (150000,)"));
        }
        free(bytes);
        shufctl_remove(rows[i].name);
    }
}

static void standard_output_gets_indices(void **state)
{
    (void)state;
    size_t size;
    char *bytes = shufctl_succeed(&size, OPTIONS " --offset %d --count %d --stride %d --out -",
                                  OFFSET, COUNT, STRIDE);
    assert_int_equal(size, sizeof places.index);
    assert_memory_equal(bytes, places.index, size);
    free(bytes);
}

/* ---- Counts ---- */

static void counts_have_shares(void **state)
{
    (void)state;
    char expected[512];
    uint64_t counts[3];
    assert_int_equal(shuf_mixture_counts(mixture, 500, counts), SHUF_OK);
    size_t used = (size_t)sprintf(expected, "SOURCE   COUNT               SHARE         WANTED\n");
    for (int i = 0; i < 3; i++) {
        char share[32];
        snprintf(share, sizeof share, "%.6g %%", 0.2 * (double)counts[i]);
        used += (size_t)sprintf(expected + used, "%-8d %-19" PRIu64 " %-13s %d %%\n", i, counts[i],
                                share, i ? 25 : 50);
    }
    char *text = shufctl_succeed(NULL, OPTIONS " --offset 400 --count 100 --counts");
    assert_string_equal(text, expected);
    free(text);
}

/* The share wanted is that of the weights, by stages. */
static void counts_as_json(void **state)
{
    (void)state;
    static const double wanted[] = {0.35, 0.425, 0.225};
    uint64_t counts[3];
    assert_int_equal(shuf_mixture_counts(mixture, 1000, counts), SHUF_OK);
    json_t *object = json_parse(shufctl_succeed(NULL, OPTIONS " --count 1000 --counts --json"));
    const json_t *sources = json_member(object, "sources");
    assert_int_equal(json_array_size(sources), 3);
    for (size_t i = 0; i < 3; i++) {
        const json_t *source = json_array_get(sources, i);
        assert_int_equal(json_member_integer(source, "count"), counts[i]);
        assert_float_equal(json_real_value(json_member(source, "share")), (double)counts[i] / 1000,
                           1e-12);
        assert_float_equal(json_real_value(json_member(source, "wanted")), wanted[i], 1e-12);
    }
    json_decref(object);
}

/* ---- JSON ---- */

static void check_numbers(const json_t *array, const uint64_t *expected, size_t count)
{
    assert_int_equal(json_array_size(array), count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(json_integer_value(json_array_get(array, i)), expected[i]);
}

static void check_request(const json_t *object)
{
    const json_t *source = json_array_get(json_member(object, "sources"), 1);
    const json_t *stages = json_member(object, "stages");
    assert_string_equal(json_member_text(object, "seed"), "3");
    assert_int_equal(json_member_integer(object, "block"), 64);
    assert_int_equal(json_member_integer(source, "size"), 200);
    assert_int_equal(json_member_integer(source, "epochs"), 2);
    assert_int_equal(json_member_integer(source, "chunk"), 10);
    assert_int_equal(json_member_integer(source, "window"), 7);
    assert_int_equal(json_array_size(stages), 2);
    assert_int_equal(json_member_integer(json_array_get(stages, 1), "first"), 500);
    check_numbers(json_member(json_array_get(stages, 0), "weights"), (uint64_t[]){2, 1, 1}, 3);
    check_numbers(json_member(json_array_get(stages, 1), "weights"), (uint64_t[]){1, 3, 1}, 3);
    assert_true(json_is_null(json_member(object, "length")));
    assert_int_equal(json_member_integer(object, "offset"), OFFSET);
    assert_int_equal(json_member_integer(object, "count"), 20);
    assert_int_equal(json_member_integer(object, "stride"), STRIDE);
}

static void places_as_json(void **state)
{
    (void)state;
    json_t *object = json_parse(shufctl_succeed(
        NULL, "--json " OPTIONS " --offset %d --count 20 --stride %d", OFFSET, STRIDE));
    const json_t *found = json_member(object, "places");
    uint64_t positions[20], sources[20];
    for (uint64_t i = 0; i < 20; i++) {
        positions[i] = OFFSET + i * STRIDE;
        sources[i] = places.source[i];
    }
    check_request(object);
    check_numbers(json_member(found, "position"), positions, 20);
    check_numbers(json_member(found, "source"), sources, 20);
    check_numbers(json_member(found, "epoch"), places.epoch, 20);
    check_numbers(json_member(found, "record"), places.record, 20);
    check_numbers(json_member(found, "index"), places.index, 20);
    json_decref(object);
}

static void check_file_summary(char *text, const char *out)
{
    json_t *object = json_parse(text);
    check_request(object);
    assert_string_equal(json_member_text(object, "out"), out);
    assert_string_equal(json_member_text(object, "format"), "raw");
    assert_string_equal(json_member_text(object, "dtype"), "u64");
    assert_int_equal(json_member_integer(object, "bytes"), 160);
    assert_true(json_is_real(json_member(object, "total_seconds")));
    json_decref(object);
}

static void summary_of_a_file_as_json(void **state)
{
    (void)state;
    struct command c;
    const char *path = shufctl_path("v.bin");
    check_file_summary(shufctl_succeed(NULL,
                                       OPTIONS " --offset %d --count 20 --stride %d --json "
                                               "--out %s",
                                       OFFSET, STRIDE, path),
                       path);
    shufctl_remove("v.bin");
    assert_int_equal(shufctl_run(&c, 0,
                                 OPTIONS " --offset %d --count 20 --stride %d --json --out -",
                                 OFFSET, STRIDE),
                     0);
    assert_int_equal(c.out.size, 160);
    check_file_summary(strdup(c.err.bytes), "-");
    command_free(&c);
}

/* ---- The length ---- */

static uint64_t length_of(const char *options)
{
    json_t *object = json_parse(shufctl_succeed(NULL, "mix --seed 7 --json --counts %s", options));
    const uint64_t length = json_member_integer(object, "length");
    assert_int_equal(json_member_integer(object, "count"), length);
    json_decref(object);
    return length;
}

static void lengths_are_those_of_the_library(void **state)
{
    (void)state;
    uint64_t exhausted[2];
    shuf_mixture *two;
    const shuf_source sources[] = {{.records = 50}, {.records = 9}};
    const uint64_t weights[] = {1, 2};
    const shuf_stage stage = {0, weights};
    const shuf_mixture_request request = {
        .seed = 7, .sources = sources, .source_count = 2, .stages = &stage, .stage_count = 1};
    assert_int_equal(shuf_mixture_make(&request, &two), SHUF_OK);
    assert_int_equal(shuf_mixture_exhausted(two, exhausted), SHUF_OK);
    shuf_mixture_free(two);
    assert_true(exhausted[1] < exhausted[0]);
#define TWO "--sizes 50,9 --weights 1,2 "
    assert_int_equal(length_of(TWO "--until first-exhausted"), exhausted[1]);
    assert_int_equal(length_of(TWO "--until all-exhausted"), exhausted[0]);
    assert_int_equal(length_of(TWO "--epochs 2"), 2 * 59);
    assert_int_equal(length_of(TWO "--epochs 2,3"), 2 * 50 + 3 * 9);
    size_t size;
    char *text = shufctl_succeed(&size, "mix " TWO "--seed 7 --epochs 1 --offset 59");
    assert_string_equal(text, "POSITION            SOURCE EPOCH        RECORD\n");
    free(text);
    text = shufctl_succeed(&size, "mix " TWO "--seed 7 --epochs 1 --offset 59 --out -");
    assert_int_equal(size, 0);
    free(text);
    text = shufctl_succeed(&size, "mix " TWO "--seed 7 --epochs 1 --stride 10 --out -");
    assert_int_equal(size, 6 * 8);
    free(text);
}

/* ---- Weights ---- */

static void check_weights(const char *options, const uint64_t *weights, size_t count)
{
    json_t *object = json_parse(shufctl_succeed(NULL, "mix --seed 7 --json --count 1 %s", options));
    check_numbers(json_member(json_array_get(json_member(object, "stages"), 0), "weights"), weights,
                  count);
    json_decref(object);
}

static void weights_are_small_whole_numbers(void **state)
{
    (void)state;
    static const struct {
        const char *options;
        uint64_t weights[3];
    } rows[] = {
        {"--sizes 8e9,2e6,5e5", {16000, 4, 1}},
        {"--sizes 6,6,6", {1, 1, 1}},
        {"--sizes 1,1,1 --weights 0.7,0.2,0.1", {7, 2, 1}},
        {"--sizes 1,1,1 --weights 70,20,10", {7, 2, 1}},
        {"--sizes 1,1,1 --weights 2/3,1/4,0", {8, 3, 0}},
        {"--sizes 1,1,1 --weights 1e-3,0.002,3k", {1, 2, 3000000}},
        {"--sizes 1,1,1 --weights 1e-19,0,0", {1, 0, 0}},
        {"--sizes 1,1,1 --weights 1e19,5e18,0", {2, 1, 0}},
        {"--sizes 1,1,1 --weights 9,9,9 --weights 3,2,1", {3, 2, 1}},
        {"--sizes 1,1,1 --weights 1/18446744073709551615,2/18446744073709551615,0", {1, 2, 0}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check_weights(rows[i].options, rows[i].weights, 3);
}

/* ---- Mistakes ---- */

static void wrong_options_are_explained(void **state)
{
    (void)state;
#define RIGHT "mix --sizes 50,9 --seed 7 --count 5 "
    static const struct shufctl_mistake rows[] = {
        {"mix --seed 7", 64, "--sizes: missing; expected it, as in --sizes 8e9,2e6"},
        {"mix --sizes 5", 64, "--seed: missing; expected it, as in --seed 7"},
        {"mix", 64, "--sizes, --seed: missing; expected them, as in --sizes 8e9,2e6 --seed 7"},
        {"mix --sizes 5,0 --seed 7", 64, "--sizes 0: expected 1 to 2^62"},
        {"mix --sizes 5,1e19 --seed 7", 64, "--sizes 1e19: expected 1 to 2^62"},
        {"mix --sizes 5,,9 --seed 7", 64,
         "--sizes: number 2 of the list is empty; expected numbers with one comma between them, "
         "as in 8e9,2e6,5e5"},
        {"mix --sizes= --seed 7", 64, "--sizes: number 1 of the list is empty"},
        {"mix --sizes 5,x --seed 7", 64, "--sizes x: expected a whole number"},
        {"mix --sizes 4611686018427387904,1 --weights 1,1 --seed 7 --count 1", 64,
         "records 1 of source 1: all sources together have more than 2^62"},
        {"mix --sizes 4611686018427387903,1 --seed 7 --count 1", 64,
         "--weights: missing; the sizes cannot be the weights, because their sum is 2^61 or more"},
        {"mix 50,9 --seed 7", 64, "did you mean --sizes 50,9?"},
        {"mix --sizes 50,9 --seed x", 64, "--seed x: expected a whole number"},
        {"mix --sizes 50,9 --key name", 64, "unrecognized option '--key'"},
        {RIGHT "--weights 1", 64, "--weights: 1 of them, expected 2, one for each source"},
        {RIGHT "--weights 1,2,3", 64, "--weights: 3 of them, expected 2, one for each source"},
        {RIGHT "--weights 1,-2", 64, "--weights -2: expected a number of 0 or more such as"},
        {RIGHT "--weights 1,nan", 64, "--weights nan: expected a number of 0 or more"},
        {RIGHT "--weights 1/0,1", 64, "--weights 1/0: expected a number of 0 or more"},
        {RIGHT "--weights 0,0.0", 64, "--weights: all weights are 0, expected one above 0"},
        {RIGHT "--weights 1,", 64, "--weights: number 2 of the list is empty"},
        {RIGHT "--weights 1e19,1", 64,
         "--weights: as whole numbers, the weights have a sum of 2^61 or more, expected less; "
         "round them to fewer digits"},
        {RIGHT "--weights 1/10000000000000000000,1/3", 64, "round them to fewer digits"},
        {RIGHT "--weights 0.1234567890123456789,1/3", 64, "round them to fewer digits"},
        {RIGHT "--weights 1/18446744073709551615,1/18446744073709551614", 64,
         "round them to fewer digits"},
        {RIGHT "--weights 0.12345678901234567890123,1", 64,
         "--weights 0.12345678901234567890123: expected at most 19 digits; round it"},
        {RIGHT "--epochs 1,2,3", 64, "--epochs: 3 of them, expected 2, one for each source"},
        {RIGHT "--epoch 3", 64, "--epoch: the sources run through their epochs; expected --epochs"},
        {RIGHT "--epochs -1", 64, "--epochs -1: expected 0 to 2^62"},
        {RIGHT "--chunk 5", 64, "--window: missing; --chunk needs it"},
        {RIGHT "--window 5", 64, "--chunk: missing; --window needs it"},
        {RIGHT "--chunk 5,0 --window 5,5", 64,
         "chunk 0, window 5 of source 1: expected both at least 1, or both 0"},
        {RIGHT "--stage 5", 64,
         "--stage 5: expected a position and the weights from there on, as in 1e6:0.5,0.3,0.2"},
        {RIGHT "--stage=", 64, "--stage '': expected a position"},
        {RIGHT "--stage 0:1,1", 64, "--stage 0: expected 1 to 2^62 - 1"},
        {RIGHT "--stage :1,1", 64, "--stage '': expected a whole number"},
        {RIGHT "--stage 9:1", 64, "--stage 9: 1 of them, expected 2, one for each source"},
        {RIGHT "--stage 9:1,x", 64, "--stage 9 x: expected a number of 0 or more"},
        {RIGHT "--stage 9:0,0", 64, "--stage 9: all weights are 0"},
        {RIGHT "--stage 9:1,1 --stage 9:1,2", 64,
         "first 9 of stage 2: expected more than 9, that of the stage before"},
        {RIGHT "--epochs 1 --stage 100:1,1", 64,
         "first 100 of stage 1: all sources of the stage before end at position 59"},
        {RIGHT "--block 0", 64, "--block 0: expected 1 to 1048576"},
        {RIGHT "--block 1", 64, "block 1: expected from 2, the number of sources, to 2^20"},
        {RIGHT "--until never", 64, "--until never: expected first-exhausted or all-exhausted"},
        {RIGHT "--until=", 64, "--until '': expected first-exhausted or all-exhausted"},
        {RIGHT "--weights 1,0 --until all-exhausted", 64,
         "--until all-exhausted: the mixture never has all records of source 1"},
        {"mix --sizes 50,9 --seed 7", 64,
         "--count: missing; the mixture has no end: expected it, as in --count 20, or --until or "
         "--epochs"},
        {"mix --sizes 50,9 --seed 7 --counts", 64, "--count: missing; the mixture has no end"},
        {"mix --sizes 50,9 --seed 7 --count 0", 64, "--count 0: expected 1 to 2^62"},
        {RIGHT "--stride 0", 64, "--stride 0: expected 1 to 2^62"},
        {RIGHT "--epochs 1 --offset 60", 64,
         "--offset 60: expected at most 59, where the mixture ends"},
        {RIGHT "--epochs 1 --offset 55", 64,
         "--count 5: expected at most 4, because the mixture ends at position 59"},
        {RIGHT "--epochs 1 --stride 15", 64,
         "--count 5: expected at most 4, because the mixture ends at position 59"},
        {RIGHT "--offset 4611686018427387900", 64, "--count 5: expected at most 4"},
        {RIGHT "--counts --stride 2", 64, "--counts: excludes --stride"},
        {RIGHT "--counts --out x.npy", 64, "--counts: excludes --out"},
        {RIGHT "--format npy", 64, "--format: nothing is written; expected --out FILE too"},
        {RIGHT "--format xml --out x", 64, "--format xml: expected npy, raw, text or csv"},
        {RIGHT "--out x.parquet", 64, "--out x.parquet: unknown suffix .parquet"},
        {RIGHT "--out=", 64, "--out '': expected a file, or - for standard output"},
        {"mix --sizes 50,9 --seed 7 --json --count 1e6 --offset 1 --count 1000001", 64,
         "--json: 1000001 places, expected at most 1000000"},
        {"mix --sizes 50,9 --seed 7 --count 1152921504606846976 --out -", 64,
         "--count 1152921504606846976: so many indices pass 2^63 bytes, expected fewer"},
        {RIGHT "--out /nonexistent/x.npy", 73, "/nonexistent/x.npy: cannot create"},
        {RIGHT "--out /dev/full", 74, "/dev/full: No space left on device"},
        {RIGHT "--out /dev/full --format text", 74, "/dev/full: No space left on device"},
        {"mixture", 64, "mix computes a mixture of data sets"},
    };
    shufctl_fail_each(rows, sizeof rows / sizeof *rows);
}

static void too_many_sources_are_an_error(void **state)
{
    (void)state;
    struct command c;
    assert_int_equal(shufctl_script(&c, "exec \"$0\" mix --seed 7 --count 1 --sizes "
                                        "$(seq -s, 1 4097)"),
                     64);
    assert_non_null(strstr(c.err.bytes, "--sizes: 4097 of them, expected at most 4096"));
    command_free(&c);
}

/* ---- Output that fails ---- */

static void full_standard_output_is_an_error(void **state)
{
    (void)state;
    static const char *const forms[] = {"--count 5", "--count 5 --json", "--count 5 --counts",
                                        "--count 1000000000000"};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        struct command c;
        assert_int_equal(
            shufctl_script(&c, "exec \"$0\" mix --sizes 50,9 --seed 7 %s >/dev/full", forms[i]),
            74);
        assert_non_null(strstr(c.err.bytes, "No space left on device"));
        command_free(&c);
    }
}

/* A limit on the size of files imitates a full disk. */
static void full_disk_leaves_no_partial_file(void **state)
{
    (void)state;
    static const char *const formats[] = {"raw", "npy", "text"};
    for (size_t i = 0; i < 3; i++) {
        struct command c;
        assert_int_equal(shufctl_script(&c,
                                        "trap '' XFSZ; ulimit -f 100; exec \"$0\" mix --sizes "
                                        "50,9 --seed 7 --count 1e6 --format %s --out %s/values",
                                        formats[i], shufctl_directory),
                         74);
        assert_non_null(strstr(c.err.bytes, "File too large"));
        command_free(&c);
        assert_int_equal(shufctl_count_files(), 0);
    }
}

static void signals_leave_no_partial_file(void **state)
{
    (void)state;
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    for (int i = 0; i < 3; i++) {
        struct command c;
        shufctl_start(&c, 0, "mix --sizes 50,9 --seed 7 --count 1e10 --format text --out %s",
                      shufctl_path("v"));
        nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
        kill(c.pid, signals[i]);
        command_finish(&c);
        assert_int_equal(c.status, 128 + signals[i]);
        assert_int_equal(shufctl_count_files(), 0);
        command_free(&c);
    }
}

static void readers_may_end_early(void **state)
{
    (void)state;
    struct command c;
    assert_int_equal(shufctl_script(&c, "\"$0\" mix --sizes 50,9 --seed 7 --count 1e12 | head -2 | "
                                        "wc -l"),
                     0);
    assert_string_equal(c.out.bytes, "2\n");
    assert_int_equal(c.err.size, 0);
    command_free(&c);
    assert_int_equal(shufctl_run(&c, COMMAND_TERMINAL_OUT, RIGHT "--out /dev/stdout --format raw"),
                     64);
    assert_non_null(strstr(c.err.bytes, "binary to a terminal"));
    command_free(&c);
}

/* ---- The group ---- */

static int set_up(void **state)
{
    make_mixture();
    return shufctl_set_up_alone(state);
}

static int tear_down(void **state)
{
    shuf_mixture_free(mixture);
    return shufctl_tear_down_alone(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_table),
        cmocka_unit_test(table_has_places_of_the_library),
        cmocka_unit_test(files_have_indices_of_the_library),
        cmocka_unit_test(standard_output_gets_indices),
        cmocka_unit_test(counts_have_shares),
        cmocka_unit_test(counts_as_json),
        cmocka_unit_test(places_as_json),
        cmocka_unit_test(summary_of_a_file_as_json),
        cmocka_unit_test(lengths_are_those_of_the_library),
        cmocka_unit_test(weights_are_small_whole_numbers),
        cmocka_unit_test(wrong_options_are_explained),
        cmocka_unit_test(too_many_sources_are_an_error),
        cmocka_unit_test(full_standard_output_is_an_error),
        cmocka_unit_test(full_disk_leaves_no_partial_file),
        cmocka_unit_test(signals_leave_no_partial_file),
        cmocka_unit_test(readers_may_end_early),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
