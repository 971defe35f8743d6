/* SPDX-License-Identifier: MIT
 *
 * The output of shufctl, on the backend of the command line: the golden values, the summaries, and
 * every format, which the test reads back; the rates of shufctl top under a known load, on a
 * terminal and in a pipe.
 */
#include "shuf.h"
#include "support/cmocka_all.h"
#include "support/expected.h"
#include "support/golden.h"
#include "support/shufctl.h"
#include "support/wire.h"
#include "verb_top.h"

#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

/* ---- The values ---- */

static void published_vectors_match(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"--n 10 --seed 7 --algorithm philox24", "5\n9\n8\n0\n1\n6\n2\n4\n3\n7\n"},
        {"--n 17 --seed 7 --epoch 3 --algorithm philox24",
         "15\n14\n2\n7\n11\n3\n16\n0\n12\n10\n6\n9\n13\n1\n5\n4\n8\n"},
        {"--n 10 --seed 7 --algorithm lcg", "1\n8\n6\n4\n2\n9\n0\n7\n5\n3\n"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *text = shufctl_succeed(NULL, "permute %s --out - --format text", rows[i][0]);
        assert_string_equal(text, rows[i][1]);
        free(text);
    }
}

static void published_digest_matches(void **state)
{
    (void)state;
    struct command c;
    assert_int_equal(
        shufctl_script(&c, "\"$0\" permute --n 1000003 --seed 7 --algorithm philox24 --dtype u64 "
                           "--format raw --out - | sha256sum"),
        0);
    assert_memory_equal(c.out.bytes,
                        "ef20c369708d908b2360a741eb6390cda5b75daf08de70e8a5bcdc06a8bbee13", 64);
    command_free(&c);
}

static uint64_t sample_value(const json_t *samples, size_t index)
{
    return (uint64_t)json_integer_value(json_array_get(samples, index));
}

/* Every row of the golden table: fingerprint, first and last values. */
static void golden_summaries_match(void **state)
{
    (void)state;
    struct golden row;
    FILE *table = golden_open("permute.txt");
    for (unsigned rows = 0; golden_next(table, &row); rows++) {
        if (rows % GOLDEN_STEP != 0)
            continue;
        json_t *object = json_parse(shufctl_succeed(NULL,
                                                    "permute --n %" PRIu64 " --seed 0x%" PRIx64
                                                    " --epoch %" PRIu64 " --algorithm %s --json",
                                                    row.n, row.seed, row.epoch, row.algorithm));
        assert_int_equal(json_member_hex(object, "fingerprint"), row.fingerprint);
        const json_t *first = json_member(object, "first"), *last = json_member(object, "last");
        assert_true(json_array_size(first) > 0);
        for (size_t i = 0; i < json_array_size(first); i++)
            assert_int_equal(sample_value(first, i), row.values[i]);
        size_t n_last = json_array_size(last);
        for (size_t i = 0; i < n_last; i++)
            assert_int_equal(sample_value(last, i), row.values[row.count - n_last + i]);
        json_decref(object);
    }
    fclose(table);
}

/* Every tenth row of the golden table: the values in the output and their fingerprint. */
static void golden_values_match(void **state)
{
    (void)state;
    struct golden row;
    FILE *table = golden_open("permute.txt");
    for (unsigned line = 0; golden_next(table, &row); line++) {
        if (line % 10 != 0)
            continue;
        size_t size;
        char *bytes =
            shufctl_succeed(&size,
                            "permute --n %" PRIu64 " --seed 0x%" PRIx64 " --epoch %" PRIu64
                            " --algorithm %s --dtype u64 --format raw --out -",
                            row.n, row.seed, row.epoch, row.algorithm);
        assert_int_equal(size, row.n * sizeof(uint64_t));
        uint64_t *values = malloc(size);
        memcpy(values, bytes, size);
        for (unsigned i = 0; i < row.count; i++)
            assert_int_equal(values[golden_position(&row, i)], row.values[i]);
        assert_int_equal(golden_fingerprint(values, row.n), row.fingerprint);
        free(values);
        free(bytes);
    }
    fclose(table);
}

static void check_raw(const shuf_request *request, unsigned width, const char *bytes, size_t size)
{
    uint64_t count, *values = expected_values(request, &count);
    assert_int_equal(size, count * width);
    void *aligned = malloc(size + 1);
    memcpy(aligned, bytes, size);
    assert_true(expected_equal(values, aligned, width, count));
    free(aligned);
    free(values);
}

static void raw_values_match(void **state)
{
    (void)state;
    size_t size;
    shuf_request request = {
        .permutation = {.n = 1001, .seed = UINT64_MAX, .epoch = UINT64_C(1) << 40}};
    char *bytes =
        shufctl_succeed(&size, "permute --n 1_001 --seed 18446744073709551615 --epoch 1024Gi "
                               "--out -");
    check_raw(&request, 4, bytes, size);
    free(bytes);
    request.permutation.dtype = SHUF_I64;
    bytes =
        shufctl_succeed(&size, "permute --n 1001 --seed 0xffffffffffffffff --epoch 0x10000000000 "
                               "--dtype i64 --out -");
    check_raw(&request, 8, bytes, size);
    free(bytes);
}

static void slices_and_shards_match(void **state)
{
    (void)state;
    size_t size;
    shuf_request slice = {
        .permutation = {
            .n = 1001, .seed = 7, .view = SHUF_VIEW_SLICE, .offset = 10, .count = 20, .stride = 3}};
    char *bytes = shufctl_succeed(
        &size, "permute --n 1001 --seed 7 --offset 10 --count 20 --stride 3 --out -");
    check_raw(&slice, 4, bytes, size);
    free(bytes);
    slice.permutation.count = 331; /* all remaining values; the last one is 10 + 330 * 3 = 1000 */
    bytes = shufctl_succeed(&size, "permute --n 1001 --seed 7 --offset 10 --stride 3 --out -");
    check_raw(&slice, 4, bytes, size);
    free(bytes);
    slice.permutation.count = 991;
    slice.permutation.stride = 1;
    bytes = shufctl_succeed(&size, "permute --n 1001 --seed 7 --offset 10 --out -");
    check_raw(&slice, 4, bytes, size);
    free(bytes);
    shuf_request shard = {
        .permutation = {.n = 1001, .seed = 7, .view = SHUF_VIEW_SHARD, .rank = 3, .world = 4}};
    bytes = shufctl_succeed(&size, "permute --n 1001 --seed 7 --rank 3 --world 4 --out -");
    check_raw(&shard, 4, bytes, size);
    free(bytes);
    shard.permutation.drop_last = true;
    bytes =
        shufctl_succeed(&size, "permute --n 1001 --seed 7 --rank 3 --world 4 --drop-last --out -");
    check_raw(&shard, 4, bytes, size);
    free(bytes);
}

/* A rank continues in the middle of an epoch. It gets all remaining values, or some of them. */
static void shards_resume_at_step(void **state)
{
    (void)state;
    size_t size;
    shuf_request shard = {
        .permutation = {.n = 1001, .seed = 7, .view = SHUF_VIEW_SHARD, .rank = 3, .world = 8}};
    char *bytes =
        shufctl_succeed(&size, "permute --n 1001 --seed 7 --rank 3 --world 8 --step 100 --out -");
    assert_int_equal(size, 26 * 4);
    shard.permutation.step = 100;
    check_raw(&shard, 4, bytes, size);
    free(bytes);
    bytes = shufctl_succeed(&size, "permute --n 1001 --seed 7 --rank 3 --world 8 --step 100 "
                                   "--count 5 --drop-last --epochs 2:4 --algorithm lcg --out -");
    shard.permutation.drop_last = true;
    shard.permutation.count = 5;
    shard.permutation.epoch = shard.permutation.epochs = 2;
    shard.permutation.algorithm = "lcg";
    check_raw(&shard, 4, bytes, size);
    free(bytes);
    bytes =
        shufctl_succeed(&size, "permute --n 1001 --seed 7 --rank 3 --world 8 --step 126 --out -");
    assert_int_equal(size, 0); /* at the end of the epoch no value remains */
    free(bytes);
    char *text = shufctl_succeed(NULL, "permute --n 1001 --seed 7 --rank 3 --world 8 --step 100");
    assert_non_null(strstr(text, "\nslice       rank 3 of 8, padded, step 100, count 26\n"));
    free(text);
    json_t *o = json_parse(shufctl_succeed(
        NULL, "permute --n 1001 --seed 7 --rank 3 --world 8 --step 100 --count 5 --json"));
    assert_int_equal(json_member_integer(json_member(o, "slice"), "step"), 100);
    assert_int_equal(json_member_integer(json_member(o, "slice"), "count"), 5);
    json_decref(o);
}

/* As in Python. The rest after the last position has no values. */
static void rest_at_end_is_empty(void **state)
{
    (void)state;
    size_t size;
    free(shufctl_succeed(&size, "permute --n 1001 --seed 7 --offset 1001 --stride 3 --out -"));
    assert_int_equal(size, 0);
    char *text = shufctl_succeed(NULL, "permute --n 1001 --seed 7 --offset 1001 --transport memfd");
    assert_non_null(strstr(text, "\nslice       offset 1001, count 0, stride 1\n"));
    free(text);
    json_t *o = json_parse(
        shufctl_succeed(NULL, "permute --n 1001 --seed 7 --epochs 2:4 --offset 1001 --json"));
    assert_int_equal(json_member_integer(json_member(o, "slice"), "offset"), 1001);
    assert_int_equal(json_member_integer(json_member(o, "slice"), "count"), 0);
    assert_int_equal(json_member_integer(o, "rows"), 2);
    json_decref(o);
}

/* ---- Formats ---- */

/* Compares the whole header with the header that NumPy writes. It has 128 bytes; 118 of them follow
 * the length. */
static void check_npy(const char *name, const char *arguments, const char *dictionary,
                      const shuf_request *request, unsigned width)
{
    char header[129], *bytes;
    const char *path = shufctl_path(name);
    size_t size;
    snprintf(header, sizeof header, "%-117s\n", dictionary);
    free(shufctl_succeed(NULL, "permute %s --out %s", arguments, path));
    bytes = shufctl_read(path, &size);
    assert_true(size >= 128);
    assert_memory_equal(bytes, "\x93NUMPY\x01\x00\x76\x00", 10);
    assert_memory_equal(bytes + 10, header, 118);
    check_raw(request, width, bytes + 128, size - 128);
    free(bytes);
    shufctl_remove(name);
}

static void npy_files_match(void **state)
{
    (void)state;
    shuf_request request = {.permutation = {.n = 1001, .seed = 7}};
    check_npy("a.npy", "--n 1001 --seed 7",
              "{'descr': '<u4', 'fortran_order': False, 'shape': (1001,), }", &request, 4);
    check_npy("b.npy", "--n 1001 --seed 7 --dtype u64",
              "{'descr': '<u8', 'fortran_order': False, 'shape': (1001,), }", &request, 8);
    check_npy("i", "--n 1001 --seed 7 --dtype i64 --format npy",
              "{'descr': '<i8', 'fortran_order': False, 'shape': (1001,), }", &request, 8);
    request.permutation.epochs = 1;
    check_npy("c.npy", "--n 1001 --seed 7 --epochs 0:1",
              "{'descr': '<u4', 'fortran_order': False, 'shape': (1, 1001), }", &request, 4);
    request.permutation.epoch = 5;
    request.permutation.epochs = 3;
    check_npy("d.npy", "--n 1001 --seed 7 --epochs 5:8",
              "{'descr': '<u4', 'fortran_order': False, 'shape': (3, 1001), }", &request, 4);
}

/* The text has one value a line, or for a batch one row a line. The output is larger than shufctl's
 * buffers. */
static void check_text(const char *text, const shuf_request *request, uint64_t per_line)
{
    uint64_t count, *values = expected_values(request, &count);
    for (uint64_t i = 0; i < count; i++) {
        char *end;
        assert_int_equal(strtoull(text, &end, 10), values[i]);
        assert_true(end > text && *text >= '0' && *text <= '9');
        assert_int_equal(*end, (i + 1) % per_line == 0 ? '\n' : ' ');
        text = end + 1;
    }
    assert_int_equal(*text, '\0');
    free(values);
}

static void text_files_match(void **state)
{
    (void)state;
    shuf_request request = {.permutation = {.n = 200003, .seed = 7}};
    char *text =
        shufctl_succeed(NULL, "permute --n 200003 --seed 7 --dtype u64 --out - --format text");
    check_text(text, &request, 1);
    free(text);
    const char *path = shufctl_path("rows.txt");
    size_t size;
    request = (shuf_request){.permutation = {.n = 30011, .seed = 7, .epoch = 2, .epochs = 5}};
    free(shufctl_succeed(NULL, "permute --n 30011 --seed 7 --epochs 2:7 --out %s", path));
    text = shufctl_read(path, &size);
    check_text(text, &request, 30011);
    free(text);
    shufctl_remove("rows.txt");
}

static void summary_as_text(void **state)
{
    (void)state;
    static const char *const lines[] = {"\nalgorithm   philox24\n",
                                        "\nn           10\n",
                                        "\nseed        7\n",
                                        "\nepoch       0\n",
                                        "\nslice       all\n",
                                        "\nshape       10 u32 (40 B)\n",
                                        "\nfirst       5 9 8 0\n",
                                        "\nlast        2 4 3 7\n",
                                        "\ncompute     ",
                                        "\ntotal       ",
                                        "values/s\n",
                                        "\ncached      ",
                                        "\nfingerprint 0x"};
    static const char *const options[] = {"", " --out /dev/null --format text"};
    char start[64], *fingerprints[2];
    snprintf(start, sizeof start, "backend     %s, ", shufctl_backend);
    for (int k = 0; k < 2; k++) { /* once without and once with the output of values */
        char *text =
            shufctl_succeed(NULL, "permute --n 10 --seed 7 --algorithm philox24%s", options[k]);
        char *begin = k == 0 ? text : strchr(text, '\n') + 1;
        assert_memory_equal(begin, start, strlen(start));
        for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
            if (!strstr(text, lines[i]))
                fprintf(stderr, "no '%s' in:\n%s", lines[i], text);
            assert_non_null(strstr(text, lines[i]));
        }
        fingerprints[k] = strdup(strstr(text, "\nfingerprint"));
        free(text);
    }
    assert_string_equal(fingerprints[0], fingerprints[1]);
    free(fingerprints[0]);
    free(fingerprints[1]);
}

static void summary_of_one_row(void **state)
{
    (void)state;
    char *text = shufctl_succeed(NULL, "permute --n 10 --seed 7 --epochs 3:4");
    assert_non_null(strstr(text, "\nshape       1 row of 10 u32 (40 B)\n"));
    free(text);
}

static void summary_as_json(void **state)
{
    (void)state;
    json_t *o =
        json_parse(shufctl_succeed(NULL, "permute --n 1001 --seed 0xffffffffffffffff --epochs 1:3 "
                                         "--rank 1 --world 2 --json"));
    shuf_request request = {.permutation = {.n = 1001,
                                            .seed = UINT64_MAX,
                                            .epoch = 1,
                                            .epochs = 2,
                                            .view = SHUF_VIEW_SHARD,
                                            .rank = 1,
                                            .world = 2}};
    uint64_t count, *values = expected_values(&request, &count);
    assert_string_equal(json_member_text(o, "backend"), shufctl_backend);
    assert_string_equal(json_member_text(o, "seed"), "18446744073709551615");
    const json_t *epochs = json_member(o, "epochs");
    assert_string_equal(json_string_value(json_array_get(epochs, 0)), "1");
    assert_string_equal(json_string_value(json_array_get(epochs, 1)), "3");
    assert_string_equal(json_member_text(o, "dtype"), "u32");
    assert_int_equal(json_member_integer(o, "rows"), 2);
    assert_int_equal(json_member_integer(o, "count"), 501);
    assert_int_equal(json_member_integer(o, "bytes"), 2 * 501 * 4);
    assert_true(json_is_false(json_member(json_member(o, "slice"), "all")));
    assert_int_equal(json_member_integer(json_member(o, "slice"), "world"), 2);
    assert_true(json_real_value(json_member(o, "compute_seconds")) > 0);
    assert_true(json_real_value(json_member(o, "total_seconds")) > 0);
    assert_true(json_real_value(json_member(o, "values_per_second")) > 0);
    assert_int_equal(json_member_hex(o, "fingerprint"), golden_fingerprint(values, count));
    assert_int_equal(sample_value(json_member(o, "last"), 3), values[count - 1]);
    free(values);
    json_decref(o);
}

/* If the values go to stdout, --summary prints the summary on stderr. */
static void summary_goes_to_stderr_beside_values(void **state)
{
    (void)state;
    struct command c;
    json_error_t error;
    assert_int_equal(shufctl_run(&c, 0,
                                 "permute --n 10 --seed 7 --algorithm philox24 --out - "
                                 "--format text --json"),
                     0);
    assert_memory_equal(c.out.bytes, "5\n9\n", 4);
    json_t *o = json_loads(c.err.bytes, 0, &error);
    assert_non_null(o);
    assert_string_equal(json_member_text(o, "format"), "text");
    assert_int_equal(json_member_hex(o, "fingerprint"),
                     golden_fingerprint((const uint64_t[]){5, 9, 8, 0, 1, 6, 2, 4, 3, 7}, 10));
    assert_true(json_is_true(json_member(json_member(o, "slice"), "all")));
    assert_int_equal(json_member_integer(json_member(o, "slice"), "count"), 10);
    json_decref(o);
    command_free(&c);
    assert_int_equal(shufctl_run(&c, 0, "permute --n 10 --seed 7 --out -"), 0);
    assert_int_equal(c.err.size, 0);
    command_free(&c);
}

static void status_and_version(void **state)
{
    (void)state;
    json_t *o = json_parse(shufctl_succeed(NULL, "status --json"));
    assert_int_equal(json_member_integer(o, "pid"), shufctl_daemon.pid);
    assert_string_equal(json_member_text(o, "backend"), shufctl_backend);
    assert_string_equal(json_member_text(o, "socket"), shufctl_daemon.socket);
    assert_int_equal(json_member_integer(o, "clients"), 1);
    assert_int_equal(json_member_integer(o, "client_limit"), 1024);
    assert_true(json_real_value(json_member(o, "uptime_seconds")) > 0);
    json_decref(o);
    char *text = shufctl_succeed(NULL, "status"), expected[64];
    const char *up = strstr(text, "\nup          ");
    assert_non_null(up);
    assert_true(strtod(up + strlen("\nup          "), NULL) > 0);
    assert_non_null(strstr(text, "\nclients     1 of 1024\n"));
    free(text);
    o = json_parse(shufctl_succeed(NULL, "version --json"));
    assert_string_equal(json_member_text(o, "shufctl"), shuf_version());
    assert_memory_equal(json_member_text(o, "daemon"), "shufd ", 6);
    json_decref(o);
    snprintf(expected, sizeof expected, "shufctl %s\nshufd ", shuf_version());
    text = shufctl_succeed(NULL, "version");
    assert_memory_equal(text, expected, strlen(expected));
    free(text);
}

/* Without a daemon, `version` prints its own version and then fails like any other verb. */
static void version_without_a_daemon(void **state)
{
    (void)state;
    struct command c;
    char expected[64];
    snprintf(expected, sizeof expected, "shufctl %s\n", shuf_version());
    assert_int_equal(shufctl_run(&c, 0, "version --socket /nonexistent/s"), 69);
    assert_string_equal(c.out.bytes, expected);
    assert_non_null(
        strstr(c.err.bytes, "shufctl version: socket /nonexistent/s: no daemon answers"));
    command_free(&c);
    assert_int_equal(shufctl_run(&c, 0, "version --json --socket /nonexistent/s"), 69);
    json_t *o = json_parse(strdup(c.out.bytes));
    assert_true(json_is_null(json_member(o, "daemon")));
    assert_non_null(strstr(json_member_text(o, "why"), "no daemon answers"));
    json_decref(o);
    command_free(&c);
}

/* Options that all verbs have may come before the verb, with and without "=". */
static void options_before_the_verb(void **state)
{
    (void)state;
    char socket[HARNESS_PATH];
    snprintf(socket, sizeof socket, "%s", shufctl_daemon.socket);
    setenv("SHUFD_SOCKET", "/nonexistent/s", 1);
    json_t *o = json_parse(shufctl_succeed(NULL, "--socket %s --json status", socket));
    assert_string_equal(json_member_text(o, "socket"), socket);
    json_decref(o);
    o = json_parse(shufctl_succeed(NULL, "--json --socket=%s permute --n 3 --seed 7", socket));
    assert_int_equal(json_integer_value(json_member(o, "n")), 3);
    json_decref(o);
    free(shufctl_succeed(NULL, "--wait 2min --socket %s leases", socket));
    setenv("SHUFD_SOCKET", socket, 1);
}

/* shufctl knows a type by its names in shufd, C, NumPy and PyTorch. A size may have a
 * prefix such as Ki. */
static void other_type_names_and_sizes_are_parsed(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"permute --n 10 --seed 7 --dtype i64", "permute --n 10 --seed 7 --dtype int64"},
        {"permute --n 10 --seed 7 --dtype u32", "permute --n 10 --seed 7 --dtype <u4"},
        {"gauss --count 5 --seed 7 --dtype f32", "gauss --count 5 --seed 7 --dtype float32"},
        {"gauss --count 5 --seed 7 --dtype bf16", "gauss --count 5 --seed 7 --dtype bfloat16"},
        {"uniform --count 5 --seed 7 --dtype f64", "uniform --count 5 --seed 7 --dtype double"},
        {"permute --n 10000 --seed 7", "permute --n 10k --seed 7"},
        {"permute --n 1000000 --seed 7 --count 2000", "permute --n 1M --seed 7 --count 2KB"},
        {"uniform --count 1024 --seed 7 --offset 3e9", "uniform --count 1KiB --seed 7 --offset 3G"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t sizes[2];
        char *first = shufctl_succeed(&sizes[0], "%s --out - --format raw", rows[i][0]);
        char *second = shufctl_succeed(&sizes[1], "%s --out - --format raw", rows[i][1]);
        assert_int_equal(sizes[0], sizes[1]);
        assert_true(sizes[0] > 0);
        assert_memory_equal(first, second, sizes[0]);
        free(first);
        free(second);
    }
}

/* ---- shufctl top ---- */

static double number_after(const char *text, const char *word)
{
    const char *at = strstr(text, word);
    if (!at)
        print_message("no %s in\n%s", word, text);
    assert_non_null(at);
    return strtod(at + strlen(word), NULL);
}

static void top_prints_daemon_lines(void **state)
{
    (void)state;
    struct wire *w = wire_greet(&shufctl_daemon);
    wire_lease(w, 1 << 20, 5, SHUF__TRANSPORT__TRANSPORT_MEMFD);
    char *text = shufctl_succeed(NULL, "top --count 2 --interval 100ms");
    assert_memory_equal(text, "shufd ", 6);
    assert_true(number_after(text, "\nqueue       ") == 0);
    assert_non_null(strstr(text, " of 1024 jobs, 2 clients\n"));
    assert_non_null(strstr(text, "\nrequests    0.0/s, 0.0/s failed, "));
    assert_non_null(strstr(text, "\nlatency     50% within -, 90% within -, 99% within -\n"));
    assert_non_null(strstr(text, "\nhost        [#"));
    assert_non_null(strstr(text, " permute   memfd "));
    assert_non_null(strstr(text, " 1048576\n"));
    const char *second = strstr(text + 6, "shufd 0");
    assert_non_null(second);
    assert_null(strstr(second + 6, "shufd 0"));
    free(text);
    wire_close(w);
}

static void one_client_has_no_plural(void **state)
{
    (void)state;
    char *text = shufctl_succeed(NULL, "top --count 1 --interval 100ms");
    assert_non_null(strstr(text, " jobs, 1 client\n"));
    free(text);
}

/* In a container shufctl is the first process of its PID namespace, which ignores signals by
 * default. The programs of unshare before util-linux 2.38 would ignore SIGTERM too. */
static void signals_end_the_first_process(void **state)
{
    (void)state;
    struct command c;
    const int status = shufctl_script(
        &c, "unshare --pid --fork env --default-signal=TERM \"$0\" top --interval 1h >/dev/null &\n"
            "u=$!; i=0\n"
            "while kill -0 $u && [ $i -lt 400 ]; do i=$((i + 1)); sleep 0.05\n"
            "kill -TERM $(cat /proc/$u/task/$u/children); done 2>/dev/null\n"
            "[ $i -lt 400 ] || kill -KILL $(cat /proc/$u/task/$u/children); wait $u");
    if (!strstr(c.err.bytes, "unshare: ")) /* else in a container without this right */
        assert_int_equal(status, 128 + SIGTERM);
    command_free(&c);
}

static bool has_ended(pid_t pid)
{
    siginfo_t ended = {0};
    return waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           ended.si_pid == pid;
}

/* The test sends requests during the whole interval. */
static void rates_match_requests(void **state)
{
    (void)state;
    struct command c;
    struct wire *w = wire_greet(&shufctl_daemon);
    unsigned done = 0;
    shufctl_start(&c, 0, "top --count 1 --interval 5s");
    while (!has_ended(c.pid)) {
        for (int i = 0; i < 32; i++, done++)
            wire_check_alive(w);
    }
    command_finish(&c);
    assert_int_equal(c.status, 0);
    const double rate = number_after(c.out.bytes, "\nrequests    ");
    assert_true(rate > 1 && rate <= done + 1);
    assert_null(strstr(c.out.bytes, "50% within -"));
    command_free(&c);
    wire_close(w);
}

static void wrong_options_are_explained(void **state)
{
    (void)state;
    shufctl_fail(64, "--interval 10ms", "top --interval 10ms");
    shufctl_fail(64, "--count", "top --count 0");
    shufctl_fail(64, "unrecognized option '--json'", "top --json");
    shufctl_fail(69, "socket /nowhere/s", "top --socket /nowhere/s");
}

/* ---- On a terminal ---- */

#ifdef SHUF_HAVE_NCURSES

static void need_script(void)
{
    if (system("command -v script >/dev/null") == 0)
        return;
    print_message("skipped: there is no script(1)\n");
    skip();
}

/* Runs shufctl by script(1) on a terminal of its own. script(1) also types the key. */
static void top_redraws_terminal(void **state)
{
    (void)state;
    struct command c;
    need_script();
    const int status = shufctl_script(
        &c,
        "(until grep -q 'q: quit' %1$s 2>/dev/null; do sleep 0.1; done; printf q; sleep 5) | "
        "TERM=xterm script -qefc \"stty rows 40 cols 100; $0 top --interval 200ms\" %1$s",
        shufctl_path("screen"));
    shufctl_remove("screen");
    assert_int_equal(status, 0);
    assert_non_null(strstr(c.out.bytes, "\033["));
    assert_non_null(strstr(c.out.bytes, "requests"));
    assert_non_null(strstr(c.out.bytes, "q: quit"));
    command_free(&c);
}

/* Many terminals have no description in a container, or on another machine. */
static void unknown_terminals_get_text(void **state)
{
    (void)state;
    static const char *const settings[] = {"TERM=no-such-terminal", "TERM=", "env --unset=TERM"};
    need_script();
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        struct command c;
        assert_int_equal(shufctl_script(&c,
                                        "%s script -qefc \"$0 top --count 2 --interval 100ms\" "
                                        "/dev/null </dev/null",
                                        settings[i]),
                         0);
        assert_non_null(strstr(c.out.bytes, "requests    0.0/s"));
        assert_null(strchr(c.out.bytes, '\033'));
        command_free(&c);
    }
}

#endif

/* ---- The numbers ---- */

static void quantiles_are_bucket_bounds(void **state)
{
    (void)state;
    static struct shuf__top_sample before, now;
    static const double bound[] = {1e-3, 1e-2, INFINITY};
    memset(&before, 0, sizeof before);
    memset(&now, 0, sizeof now);
    assert_int_equal(shuf__top_quantile(&before, &now, 0.5), 0);
    before.buckets = now.buckets = 3;
    memcpy(before.bound, bound, sizeof bound);
    memcpy(now.bound, bound, sizeof bound);
    memcpy(before.bucket, (double[]){100, 100, 100}, 3 * sizeof(double));
    memcpy(now.bucket, (double[]){100, 100, 100}, 3 * sizeof(double));
    assert_int_equal(shuf__top_quantile(&before, &now, 0.5), 0);
    memcpy(now.bucket, (double[]){150, 190, 200}, 3 * sizeof(double));
    assert_int_equal(shuf__top_quantile(&before, &now, 0.5), 1000000);
    assert_int_equal(shuf__top_quantile(&before, &now, 0.9), 10000000);
    /* The result is the bound of the last bucket, although the value may be larger. */
    assert_int_equal(shuf__top_quantile(&before, &now, 0.99), 10000000);
    before.buckets = 0;
    assert_int_equal(shuf__top_quantile(&before, &now, 0.5), 1000000);
}

int main(int argc, char **argv)
{
    shufctl_backend = harness_backend = harness_backend_or_skip(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_vectors_match),
        cmocka_unit_test(published_digest_matches),
        cmocka_unit_test(golden_summaries_match),
        cmocka_unit_test(golden_values_match),
        cmocka_unit_test(raw_values_match),
        cmocka_unit_test(slices_and_shards_match),
        cmocka_unit_test(shards_resume_at_step),
        cmocka_unit_test(rest_at_end_is_empty),
        cmocka_unit_test(npy_files_match),
        cmocka_unit_test(text_files_match),
        cmocka_unit_test(summary_as_text),
        cmocka_unit_test(summary_of_one_row),
        cmocka_unit_test(summary_as_json),
        cmocka_unit_test(summary_goes_to_stderr_beside_values),
        cmocka_unit_test(status_and_version),
        cmocka_unit_test(version_without_a_daemon),
        cmocka_unit_test(options_before_the_verb),
        cmocka_unit_test(other_type_names_and_sizes_are_parsed),
    };
    const struct CMUnitTest top_tests[] = {
        cmocka_unit_test(quantiles_are_bucket_bounds),
        cmocka_unit_test(top_prints_daemon_lines),
        cmocka_unit_test(one_client_has_no_plural),
        cmocka_unit_test(rates_match_requests),
        cmocka_unit_test(wrong_options_are_explained),
        cmocka_unit_test(signals_end_the_first_process),
#ifdef SHUF_HAVE_NCURSES
        cmocka_unit_test(top_redraws_terminal),
        cmocka_unit_test(unknown_terminals_get_text),
#endif
    };
    return cmocka_run_group_tests(tests, shufctl_set_up, shufctl_tear_down) +
           cmocka_run_group_tests(top_tests, shufctl_set_up, shufctl_tear_down);
}
