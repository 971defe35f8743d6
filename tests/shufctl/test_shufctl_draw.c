/* SPDX-License-Identifier: MIT
 *
 * shufctl gauss and shufctl uniform, on the backend of the command line: the golden table, the
 * summaries, the message of every mistake, and every format, which the test reads back.
 */
#include "support/cmocka_all.h"
#include "support/draws.h"
#include "support/golden.h"
#include "support/shufctl.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t bits_at(const char *values, unsigned width, uint64_t i)
{
    uint64_t bits = 0; /* the value has the low bytes: the machine is little-endian */
    memcpy(&bits, values + i * width, width);
    return bits;
}

/* ---- Values ---- */

static void arguments_of(const struct golden_stream *row, char *text, size_t size)
{
    const bool box_muller = strcmp(row->distribution, "box-muller") == 0;
    char moments[128] = "";
    if (box_muller || strcmp(row->distribution, "gauss") == 0)
        snprintf(moments, sizeof moments, " --mean %.17g --std %.17g --method %s", row->mean,
                 row->std, box_muller ? "box-muller" : "table");
    else if (strcmp(row->distribution, "integers") == 0)
        snprintf(moments, sizeof moments, " --bound %" PRIu64, row->bound);
    else if (strcmp(row->distribution, "uniform") != 0)
        snprintf(moments, sizeof moments, " --%s %.17g",
                 strcmp(row->distribution, "bernoulli") == 0 ? "probability" : "mean", row->mean);
    snprintf(text, size,
             "%s --count %" PRIu64 " --seed 0x%" PRIx64 " --stream %" PRIu64 " --offset %" PRIu64
             " --dtype %s%s",
             box_muller ? "gauss" : row->distribution, row->count, row->seed, row->stream,
             row->offset, row->dtype, moments);
}

static void check_golden(const struct golden_stream *row)
{
    size_t size;
    char arguments[256];
    const unsigned width = draw_width(draw_dtype(row->dtype));
    arguments_of(row, arguments, sizeof arguments);
    char *bytes = shufctl_succeed(&size, "%s --format raw --out -", arguments);
    assert_int_equal(size, row->count * width);
    uint64_t *values = malloc(row->count * sizeof *values);
    for (uint64_t i = 0; i < row->count; i++)
        values[i] = bits_at(bytes, width, i);
    for (unsigned i = 0; i < row->shown; i++)
        assert_int_equal(values[i], row->bits[i]);
    assert_int_equal(golden_fingerprint(values, row->count), row->fingerprint);
    free(values);
    free(bytes);
    json_t *object = json_parse(shufctl_succeed(NULL, "%s --json", arguments));
    assert_int_equal(json_member_hex(object, "fingerprint"), row->fingerprint);
    assert_string_equal(json_member_text(object, "dtype"), row->dtype);
    json_decref(object);
}

/* Every third row of the golden table. */
static void golden_table_matches(void **state)
{
    (void)state;
    int rows = 0;
    struct golden_stream row;
    FILE *table = golden_open("streams.txt");
    for (; golden_next_stream(table, &row); rows++)
        if (rows % 3 == 0)
            check_golden(&row);
    assert_true(rows > 20);
    fclose(table);
}

/* ---- Formats ---- */

static const struct {
    /* verb: with the options that it requires; descr: the type's name in NumPy, or NULL if NumPy
     * has no such type */
    const char *verb, *dtype, *descr;
} kinds[] = {
    {"gauss", "f64", "<f8"},
    {"gauss", "f32", "<f4"},
    {"gauss", "f16", "<f2"},
    {"gauss", "bf16", NULL},
    {"uniform", "f64", "<f8"},
    {"uniform", "f32", "<f4"},
    {"uniform", "u32", "<u4"},
    {"uniform", "u64", "<u8"},
    {"exponential", "f64", "<f8"},
    {"exponential", "f32", "<f4"},
    {"bernoulli", "u32", "<u4"},
    {"bernoulli", "u64", "<u8"},
    {"integers --bound 1e3", "u32", "<u4"},
    {"integers --bound 1e3", "u64", "<u8"},
};

enum { KINDS = sizeof kinds / sizeof *kinds, COUNT = 3000 };

static char *raw_values(int kind)
{
    size_t size;
    char *bytes = shufctl_succeed(&size, "%s --count 3000 --seed 5 --dtype %s --format raw --out -",
                                  kinds[kind].verb, kinds[kind].dtype);
    assert_int_equal(size, COUNT * draw_width(draw_dtype(kinds[kind].dtype)));
    return bytes;
}

/* The .npy file has exactly the header and the bytes that numpy.load() expects. */
static void npy_files_match(void **state)
{
    (void)state;
    for (int i = 0; i < KINDS; i++) {
        size_t size;
        char header[128];
        if (!kinds[i].descr)
            continue;
        free(shufctl_succeed(NULL, "%s --count 3e3 --seed 5 --dtype %s --out %s", kinds[i].verb,
                             kinds[i].dtype, shufctl_path("a.npy")));
        char *file = shufctl_read(shufctl_path("a.npy"), &size), *values = raw_values(i);
        snprintf(header, sizeof header,
                 "{'descr': '%s', 'fortran_order': False, 'shape': (3000,), }", kinds[i].descr);
        assert_memory_equal(file, "\x93NUMPY\x01\x00\x76\x00", 10);
        assert_memory_equal(file + 10, header, strlen(header));
        assert_int_equal(file[127], '\n');
        const size_t bytes = COUNT * draw_width(draw_dtype(kinds[i].dtype));
        assert_int_equal(size, 128 + bytes);
        assert_memory_equal(file + 128, values, bytes);
        free(values);
        free(file);
        shufctl_remove("a.npy");
    }
}

/* Checks that a line reads back as exactly this value. */
static void check_line(const char *line, char **end, shuf_dtype dtype, uint64_t bits)
{
    const double value = draw_value(dtype, bits);
    switch (dtype) {
    case SHUF_U32:
    case SHUF_U64:
        assert_true(strtoull(line, end, 10) == bits);
        break;
    case SHUF_F64:
        assert_true(strtod(line, end) == value);
        break;
    default:
        assert_true((double)strtof(line, end) == value);
    }
    assert_int_equal(**end, '\n');
    (*end)++;
}

static void text_round_trips(void **state)
{
    (void)state;
    for (int i = 0; i < KINDS; i++) {
        const shuf_dtype dtype = draw_dtype(kinds[i].dtype);
        char *values = raw_values(i);
        char *text =
            shufctl_succeed(NULL, "%s --count 3000 --seed 5 --dtype %s --out - --format text",
                            kinds[i].verb, kinds[i].dtype);
        char *line = text;
        for (uint64_t k = 0; k < COUNT; k++)
            check_line(line, &line, dtype, bits_at(values, draw_width(dtype), k));
        assert_int_equal(*line, '\0');
        free(text);
        free(values);
    }
}

/* A part of a stream has the same values by every transport. */
static void part_of_a_stream_matches(void **state)
{
    (void)state;
    char *all = raw_values(0);
    static const char *const transport_options[] = {"", "--transport inline", "--transport memfd"};
    for (int i = 0; i < 3; i++) {
        size_t size;
        char *part = shufctl_succeed(&size, "gauss --count 77 --offset 1001 --seed 5 --out - %s",
                                     transport_options[i]);
        assert_int_equal(size, 77 * 8);
        assert_memory_equal(part, all + 1001 * 8, size);
        free(part);
    }
    free(all);
}

/* The example prints the daemon's value and the value of the inline C. */
static void example_matches_daemon(void **state)
{
    (void)state;
    struct command c;
    char offset[32], first[64], alone[64];
    const char *const argv[] = {NOISE_PATH, "3", NULL};
    assert_int_equal(command_run(&c, 0, argv), 0);
    assert_int_equal(sscanf(c.out.bytes,
                            "values from %31[0-9]: %*[^\n] the first: %63[^,], by itself: %63s",
                            offset, first, alone),
                     3);
    assert_string_equal(offset, "300000");
    assert_string_equal(first, alone);
    command_free(&c);
}

/* ---- Summaries ---- */

static double member_real(const json_t *object, const char *key)
{
    return json_number_value(json_member(object, key));
}

/* The mean of a power of the distance from `centre`. */
static double power_mean(const char *values, shuf_dtype dtype, double centre, int power)
{
    double sum = 0;
    for (uint64_t i = 0; i < COUNT; i++)
        sum += pow(draw_value(dtype, bits_at(values, draw_width(dtype), i)) - centre, power);
    return sum / COUNT;
}

static void expect_near(double got, double expected, double scale)
{
    if (!(fabs(got - expected) <= 1e-9 * scale))
        fail_msg("%.17g, expected %.17g", got, expected);
}

/* Frees the values. The moments that divide by a variance of 0 are null. */
static void check_moments(char *values, shuf_dtype dtype, const json_t *moments)
{
    const double mean = power_mean(values, dtype, 0, 1);
    double least = (double)INFINITY, largest = -(double)INFINITY;
    for (uint64_t i = 0; i < COUNT; i++) {
        const double x = draw_value(dtype, bits_at(values, draw_width(dtype), i));
        least = fmin(least, x);
        largest = fmax(largest, x);
    }
    const bool equal = least == largest;
    const double m2 = equal ? 0 : power_mean(values, dtype, mean, 2);
    expect_near(member_real(moments, "mean"), mean, equal ? fabs(mean) : sqrt(m2));
    expect_near(member_real(moments, "variance"), m2, m2);
    assert_true(json_is_null(json_member(moments, "skewness")) == equal);
    assert_true(json_is_null(json_member(moments, "kurtosis")) == equal);
    if (!equal) {
        expect_near(member_real(moments, "skewness"),
                    power_mean(values, dtype, mean, 3) / (m2 * sqrt(m2)), 1);
        expect_near(member_real(moments, "kurtosis"),
                    power_mean(values, dtype, mean, 4) / (m2 * m2), 1);
    }
    assert_true(member_real(moments, "least") == least);
    assert_true(member_real(moments, "largest") == largest);
    free(values);
}

/* The summary agrees with moments computed from the values. */
static void moments_in_summary_match(void **state)
{
    (void)state;
    for (int i = 0; i < KINDS; i++) {
        json_t *object =
            json_parse(shufctl_succeed(NULL, "%s --count 3000 --seed 5 --dtype %s --summary --json",
                                       kinds[i].verb, kinds[i].dtype));
        const char *const name = json_member_text(object, "distribution");
        assert_true(strncmp(name, kinds[i].verb, strlen(name)) == 0);
        if (strcmp(kinds[i].verb, "gauss") == 0)
            assert_string_equal(json_member_text(object, "method"), "table");
        assert_string_equal(json_member_text(object, "dtype"), kinds[i].dtype);
        assert_string_equal(json_member_text(object, "seed"), "5");
        assert_string_equal(json_member_text(object, "stream"), "0");
        assert_int_equal(json_member_integer(object, "count"), COUNT);
        check_moments(raw_values(i), draw_dtype(kinds[i].dtype), json_member(object, "moments"));
        json_decref(object);
    }
}

/* Rare bits, and values that are all equal, but not to the mean of their distribution. */
static void moments_of_narrow_laws_match(void **state)
{
    static const struct {
        const char *law, *dtype;
    } laws[] = {
        {"bernoulli --probability 0", "u32"},     {"bernoulli --probability 1", "u64"},
        {"bernoulli --probability 1e-9", "u32"},  {"bernoulli --probability 1e-3", "u32"},
        {"bernoulli --probability 0.999", "u64"}, {"gauss --mean 0.1 --std 1e-20", "f32"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof laws / sizeof *laws; i++) {
        char *values =
            shufctl_succeed(NULL, "%s --count 3000 --seed 5 --dtype %s --format raw --out -",
                            laws[i].law, laws[i].dtype);
        json_t *object =
            json_parse(shufctl_succeed(NULL, "%s --count 3000 --seed 5 --dtype %s --summary --json",
                                       laws[i].law, laws[i].dtype));
        check_moments(values, draw_dtype(laws[i].dtype), json_member(object, "moments"));
        json_decref(object);
    }
}

static void first_and_last_values_match(void **state)
{
    (void)state;
    for (int i = 0; i < KINDS; i++) {
        const shuf_dtype dtype = draw_dtype(kinds[i].dtype);
        char *values = raw_values(i);
        json_t *object = json_parse(shufctl_succeed(
            NULL, "%s --count 3000 --seed 5 --dtype %s --json", kinds[i].verb, kinds[i].dtype));
        assert_null(json_object_get(object, "moments"));
        for (size_t k = 0; k < 8; k++) {
            const json_t *samples = json_member(object, k < 4 ? "first" : "last");
            const json_t *got = json_array_get(samples, k % 4);
            const uint64_t bits = bits_at(values, draw_width(dtype), k < 4 ? k : COUNT - 8 + k);
            if (dtype == SHUF_U64)
                assert_true(strtoull(json_string_value(got), NULL, 10) == bits);
            else
                assert_true(json_number_value(got) == draw_value(dtype, bits));
        }
        json_decref(object);
        free(values);
    }
}

/* Expects a line of the summary with this key and this text after it. */
static void expect_line(const char *text, const char *key, const char *words)
{
    char start[32];
    snprintf(start, sizeof start, "\n%-12s", key);
    const char *line = strstr(text, start);
    if (!line || strncmp(line + 13, words, strlen(words)) != 0)
        fail_msg("no line \"%s %s\" in\n%s", key, words, text);
}

/* Finds the least and the largest value, as the summary prints them. They look as in the text
 * format; those of u64 are rounded doubles. */
static void extremes_of(int kind, char least[64], char largest[64])
{
    double low = (double)INFINITY, high = -(double)INFINITY;
    char *text = shufctl_succeed(NULL, "%s --count 3000 --seed 5 --dtype %s --out - --format text",
                                 kinds[kind].verb, kinds[kind].dtype);
    for (char *line = text, *end; *line; line = end + 1) {
        const double value = strtod(line, &end);
        if (value < low)
            snprintf(least, 64, "%.*s\n", (int)(end - line), line);
        if (value > high)
            snprintf(largest, 64, "%.*s\n", (int)(end - line), line);
        low = fmin(low, value);
        high = fmax(high, value);
    }
    if (strcmp(kinds[kind].dtype, "u64") == 0 && high >= 0x1p53) {
        snprintf(least, 64, "about %.16g\n", low);
        snprintf(largest, 64, "about %.16g\n", high);
    }
    free(text);
}

static void extremes_print_like_values(void **state)
{
    (void)state;
    for (int i = 0; i < KINDS; i++) {
        char least[64], largest[64];
        extremes_of(i, least, largest);
        char *text = shufctl_succeed(NULL, "%s --count 3000 --seed 5 --dtype %s --summary",
                                     kinds[i].verb, kinds[i].dtype);
        expect_line(text, "least", least);
        expect_line(text, "largest", largest);
        free(text);
    }
}

static void summary_as_text(void **state)
{
    (void)state;
    char *text = shufctl_succeed(NULL, "gauss --count 64Ki --seed 1 --stream 2 --offset 1e9 --mean "
                                       "-1e-3 --std 2.5 --dtype bf16 --summary");
    expect_line(text, "numbers", "gauss, mean -0.001, std 2.5\n");
    expect_line(text, "seed", "1\n");
    expect_line(text, "stream", "2\n");
    expect_line(text, "slice", "offset 1000000000, count 65536\n");
    expect_line(text, "shape", "65536 bf16 (131 kB)\n");
    static const char *const keys[] = {"first",    "last",     "mean",    "variance",
                                       "skewness", "kurtosis", "largest", "fingerprint"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        expect_line(text, keys[i], "");
    free(text);
    text = shufctl_succeed(NULL, "gauss --count 9 --seed 1 --method box-muller");
    expect_line(text, "numbers", "gauss, method box-muller, mean 0, std 1\n");
    free(text);
    text = shufctl_succeed(NULL, "uniform --count 1 --seed 1 --prefetch");
    assert_memory_equal(text, "ready in shufd: uniform, seed 1, stream 0, offset 0: 8 B, ", 58);
    free(text);
}

/* If the values go to stdout, the summary goes to stderr. */
static void summary_goes_to_stderr_beside_values(void **state)
{
    (void)state;
    struct command c;
    assert_int_equal(shufctl_run(&c, 0, "gauss --count 100 --seed 1 --out - --summary"), 0);
    assert_int_equal(c.out.size, 800);
    expect_line(c.err.bytes, "kurtosis", "");
    command_free(&c);
    assert_int_equal(shufctl_run(&c, 0, "gauss --count 100 --seed 1 --out -"), 0);
    assert_int_equal(c.out.size, 800);
    assert_int_equal(c.err.size, 0);
    command_free(&c);
    free(shufctl_succeed(NULL, "gauss --count 1 --seed 1 --summary --out %s",
                         shufctl_path("x.bin")));
    shufctl_remove("x.bin");
}

/* If stderr is full, the values still arrive. shufctl reports the failure by its exit status. */
static void full_standard_error_is_reported(void **state)
{
    (void)state;
    static const char *const options[] = {"--summary", "--json", "--json --transport memfd"};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        struct command c;
        assert_int_equal(shufctl_script(&c,
                                        "exec \"$0\" gauss --count 100 --seed 1 --out - %s "
                                        "2>/dev/full",
                                        options[i]),
                         74);
        assert_int_equal(c.out.size, 800);
        command_free(&c);
    }
}

/* Some moments are undefined for one value, or if all values round to the mean. The summary then
 * has null for them. */
static void undefined_moments_are_null(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "uniform --count 1 --seed 1",
        "gauss --count 1000 --seed 1 --dtype f16 --std 1e-10",
        "gauss --count 1000 --seed 1 --mean 1e30",
        "gauss --count 1000 --seed 1 --dtype f16 --mean 1e4",
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_t *object = json_parse(shufctl_succeed(NULL, "%s --summary --json", rows[i]));
        const json_t *moments = json_member(object, "moments");
        assert_true(member_real(moments, "variance") == 0);
        assert_true(json_is_null(json_member(moments, "skewness")));
        assert_true(json_is_null(json_member(moments, "kurtosis")));
        json_decref(object);
        char *text = shufctl_succeed(NULL, "%s --summary", rows[i]);
        expect_line(text, "variance", "0\n");
        expect_line(text, "skewness", "-\n");
        expect_line(text, "kurtosis", "-\n");
        free(text);
    }
}

/* ---- Mistakes ---- */

static void wrong_options_are_explained(void **state)
{
    (void)state;
    static const struct shufctl_mistake rows[] = {
        {"gauss --seed 7", 64, "--count: missing"},
        {"gauss --count 7", 64, "--seed: missing"},
        {"gauss --count 0 --seed 7", 64, "count 0: expected at least 1"},
        {"gauss --count 1.5 --seed 7", 64, "--count 1.5: expected a whole number"},
        {"gauss --count 10 --seed 7 --std 0", 64, "std 0: expected 2^-100"},
        {"gauss --count 10 --seed 7 --std -1", 64, "std -1: expected 2^-100"},
        {"gauss --count 10 --seed 7 --std nan", 64, "std nan: expected 2^-100"},
        {"gauss --count 10 --seed 7 --std inf", 64, "std inf: expected 2^-100"},
        {"gauss --count 10 --seed 7 --std 1e999", 64, "--std 1e999: too large for a double"},
        {"gauss --count 10 --seed 7 --std 1e-400", 64, "--std 1e-400: too small for a double"},
        {"gauss --count 10 --seed 7 --out=", 64, "--out '': expected a file, or - for standard"},
        {"gauss --count 10 --seed 7 --epoch 3", 64,
         "--epoch: random numbers have no epoch; expected --stream"},
        {"uniform --count 10 --seed 7 --epoch 3", 64, "--epoch: random numbers have no epoch"},
        {"gauss --count 10 --seed 7 --std 1x", 64, "--std 1x: expected a decimal number"},
        {"gauss --count 10 --seed 7 --std 0x1p3", 64, "--std 0x1p3: expected a decimal number"},
        {"gauss --count 10 --seed 7 --std=", 64, "--std '': expected a decimal number"},
        {"gauss --count 10 --seed 7 --mean nan", 64, "mean nan: expected -2^100"},
        {"gauss --count 10 --seed 7 --mean 1e31", 64, "mean 1e+31: expected -2^100 to 2^100"},
        {"gauss --count 10 --seed 7 --dtype i64", 64,
         "--dtype i64: expected f64, f32, f16 or bf16\n"},
        {"gauss --count 10 --seed 7 --dtype u32", 64, "dtype u32: expected f64, f32, f16 or bf16"},
        {"gauss --count 10 --seed 7 --dtype f12", 64,
         "--dtype f12: expected f64, f32, f16 or bf16; did you mean f32?"},
        {"gauss --count 10 --seed 7 --dtype auto", 64, "--dtype auto: expected f64, f32"},
        {"gauss --count 10 --seed 7 --dtype f16 --std 5e3", 64, "of at most 65504, not 80000"},
        {"gauss --count 2 --seed 7 --offset 4611686018427387903", 64,
         "count 2: expected at most 1"},
        {"gauss --count 1 --seed 7 --offset 4Ei", 64, "offset 4611686018427387904: expected less"},
        {"gauss --count 10 --seed 7 --dtype bf16 --out x.npy", 64,
         "--format npy: numpy has no bf16; expected raw, text or csv, or --dtype f32"},
        {"gauss --count 10 --seed 7 --dtype bf16 --out x --format npy", 64, "no bf16"},
        {"gauss --count 10 --seed 7 --format raw", 64, "--format: nothing is written"},
        {"gauss --count 10 --seed 7 --prefetch --out x.bin", 64, "--prefetch: excludes --out"},
        {"gauss --count 10 --seed 7 --prefetch --summary", 64, "--prefetch: excludes --summary"},
        {"gauss --count 10 --seed 7 --transport tcp", 64, "--transport tcp: expected inline"},
        {"gauss --n 10 --seed 7", 64, "unrecognized option '--n'"},
        {"gauss --count 35184372088832 --seed 7 --transport memfd", 71,
         "needs 256 TiB of host memory"},
        {"gauss --count 1152921504606846976 --seed 7", 71, "pass 2^63"},
        {"gauss --count 10 --seed 7 --socket /tmp/shuf-none", 69, "start one: shufd"},
        {"uniform --count 10 --seed 7 --std 1", 64,
         "--std: only gauss has this option; expected shufctl gauss"},
        {"gauss --count 10 --seed 7 --method polar", 64,
         "--method polar: expected table or box-muller"},
        {"gauss --count 10 --seed 7 --method=", 64, "--method '': expected table or box-muller"},
        {"uniform --count 10 --seed 7 --method table", 64,
         "--method: only gauss has this option; expected shufctl gauss"},
        {"uniform --count 10 --seed 7 --mean 0", 64,
         "--mean: uniform numbers have no mean; expected shufctl gauss or shufctl exponential"},
        {"exponential --count 10 --seed 7 --mean 0", 64, "mean 0: expected 2^-100"},
        {"exponential --count 10 --seed 7 --std 1", 64, "--std: only gauss has this option"},
        {"exponential --count 10 --seed 7 --dtype f16", 64, "--dtype f16: expected f64 or f32\n"},
        {"bernoulli --count 10 --seed 7 --probability 1.5", 64,
         "--probability 1.5: expected 0 to 1"},
        {"bernoulli --count 10 --seed 7 --probability nan", 64,
         "--probability nan: expected 0 to 1"},
        {"bernoulli --count 10 --seed 7 --probability x", 64, "--probability x: expected"},
        {"bernoulli --count 10 --seed 7 --dtype f32", 64, "--dtype f32: expected u32 or u64\n"},
        {"integers --count 10 --seed 7", 64, "--bound: missing"},
        {"integers --count 10 --seed 7 --bound 0", 64,
         "bound 0: expected 1 to 2^32 with dtype u32"},
        {"integers --count 10 --seed 7 --bound 5e9 --dtype u32", 64,
         "bound 5000000000: expected 1 to 2^32 with dtype u32"},
        {"integers --count 10 --seed 7 --bound 0.5", 64, "--bound 0.5: expected"},
        {"integers --count 10 --seed 7 --bound 5 --mean 1", 64, "--mean: uniform numbers have no"},
        {"integers --count 10 --seed 7 --bound 5 --dtype i64", 64,
         "--dtype i64: expected u32 or u64\n"},
        {"uniform --count 10 --seed 7 --high 5", 64, "expected shufctl integers"},
        {"uniform --count 10 --seed 7 --dtype bf16", 64,
         "--dtype bf16: expected u32, u64, f64 or f32\n"},
        {"uniform --count 10 --seed 7 --dtype i64", 64, "dtype i64: expected u32, u64, f64 or f32"},
        {"uniform 10", 64, "argument '10'"},
    };
    shufctl_fail_each(rows, sizeof rows / sizeof *rows);
}

static void help_lists_options(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"gauss --help", "--std=D"},
        {"gauss --help", "--summary"},
        {"gauss --help", "--method=table|box-muller"},
        {"help gauss", "--transport=memfd|cuda-fd|"},
        {"uniform --help", "--dtype=f64|f32|u32|u64"},
        {"help", "uniform   "},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *text = shufctl_succeed(NULL, "%s", rows[i][0]);
        assert_non_null(strstr(text, rows[i][1]));
        free(text);
    }
    char *text = shufctl_succeed(NULL, "uniform --help");
    assert_null(strstr(text, "--std"));
    free(text);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_table_matches),
        cmocka_unit_test(npy_files_match),
        cmocka_unit_test(text_round_trips),
        cmocka_unit_test(part_of_a_stream_matches),
        cmocka_unit_test(example_matches_daemon),
        cmocka_unit_test(moments_in_summary_match),
        cmocka_unit_test(moments_of_narrow_laws_match),
        cmocka_unit_test(first_and_last_values_match),
        cmocka_unit_test(summary_as_text),
        cmocka_unit_test(summary_goes_to_stderr_beside_values),
        cmocka_unit_test(undefined_moments_are_null),
        cmocka_unit_test(extremes_print_like_values),
        cmocka_unit_test(full_standard_error_is_reported),
        cmocka_unit_test(wrong_options_are_explained),
        cmocka_unit_test(help_lists_options),
    };
    shufctl_backend = harness_backend_or_skip(argc, argv);
    return cmocka_run_group_tests(tests, shufctl_set_up, shufctl_tear_down);
}
