/* SPDX-License-Identifier: MIT
 *
 * shufctl as people use it, on the backend that the command line names: the
 * published vectors, every format read back, what each mistake is told, and
 * files that are whole or not there.
 */
#include "command.h"
#include "harness.h"
#include "shuf.h"
#include "support/cmocka_all.h"
#include "support/expected.h"
#include "support/golden.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char *backend;
static struct harness daemon_;
static char directory[64];

/* ---- Running it --------------------------------------------------------- */

enum { ARGUMENTS = 24 };

struct line {
    char words[512];
    const char *argv[ARGUMENTS + 1];
};

/* shufctl and the words of `text`, which are parted by single blanks. */
static void split(struct line *line, const char *text)
{
    int count = 0;
    snprintf(line->words, sizeof line->words, "%s", text);
    line->argv[count++] = SHUFCTL_PATH;
    for (char *word = strtok(line->words, " "); word; word = strtok(NULL, " ")) {
        assert_true(count < ARGUMENTS);
        line->argv[count++] = word;
    }
    line->argv[count] = NULL;
}

__attribute__((format(printf, 3, 4))) static int run(struct command *c, unsigned flags,
                                                     const char *format, ...)
{
    char text[512];
    struct line line;
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    split(&line, text);
    return command_run(c, flags, line.argv);
}

/* Runs it to success and gives what stood on stdout (freed by the caller). */
#define succeed(size, ...) succeed_(size, 0, __VA_ARGS__)
__attribute__((format(printf, 3, 4))) static char *succeed_(size_t *size, unsigned flags,
                                                            const char *format, ...)
{
    char text[512];
    struct command c;
    struct line line;
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    split(&line, text);
    if (command_run(&c, flags, line.argv) != 0)
        fprintf(stderr, "shufctl %s: %d\n%s", text, c.status, c.err.bytes);
    assert_int_equal(c.status, 0);
    if (size)
        *size = c.out.size;
    free(c.err.bytes);
    return c.out.bytes;
}

static char *read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    struct stat status;
    assert_int_equal(fstat(fileno(file), &status), 0);
    char *bytes = malloc((size_t)status.st_size + 1);
    *size = fread(bytes, 1, (size_t)status.st_size, file);
    bytes[*size] = '\0';
    fclose(file);
    return bytes;
}

/* Entries of the test's directory. */
static int files(void)
{
    int count = -2; /* . and .. */
    DIR *open_directory = opendir(directory);
    while (readdir(open_directory))
        count++;
    closedir(open_directory);
    return count;
}

static void remove_file(const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    assert_int_equal(unlink(path), 0);
}

/* ---- The values --------------------------------------------------------- */

static void published_vectors(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"--n 10 --seed 7", "5\n9\n8\n0\n1\n6\n2\n4\n3\n7\n"},
        {"--n 17 --seed 7 --epoch 3", "15\n14\n2\n7\n11\n3\n16\n0\n12\n10\n6\n9\n13\n1\n5\n4\n8\n"},
        {"--n 10 --seed 7 --algorithm lcg", "1\n8\n6\n4\n2\n9\n0\n7\n5\n3\n"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *text = succeed(NULL, "permute %s --out - --format text", rows[i][0]);
        assert_string_equal(text, rows[i][1]);
        free(text);
    }
}

static void published_digest(void **state)
{
    (void)state;
    const char *const argv[] = {
        "sh", "-c",
        "\"$0\" permute --n 1000003 --seed 7 --dtype u64 --format raw --out - | sha256sum",
        SHUFCTL_PATH, NULL};
    struct command c;
    assert_int_equal(command_run(&c, 0, argv), 0);
    assert_memory_equal(c.out.bytes,
                        "ef20c369708d908b2360a741eb6390cda5b75daf08de70e8a5bcdc06a8bbee13", 64);
    command_free(&c);
}

static const json_t *member(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    if (!value)
        fprintf(stderr, "no member '%s'\n", key);
    assert_non_null(value);
    return value;
}

static json_t *parse_json(char *text)
{
    json_error_t error;
    json_t *object = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    if (!object)
        fprintf(stderr, "%s: %s\n", error.text, text);
    assert_non_null(object);
    free(text);
    return object;
}

static uint64_t hex_member(const json_t *object, const char *key)
{
    const char *text = json_string_value(member(object, key));
    assert_int_equal(strlen(text), 18);
    return strtoull(text, NULL, 16);
}

static uint64_t edge_value(const json_t *edge, size_t index)
{
    return (uint64_t)json_integer_value(json_array_get(edge, index));
}

/* Every row of the golden table: fingerprint, first and last values. */
static void golden_summaries(void **state)
{
    (void)state;
    struct golden row;
    FILE *table = golden_open("permute.txt");
    while (golden_next(table, &row)) {
        json_t *object = parse_json(succeed(NULL,
                                            "permute --n %" PRIu64 " --seed 0x%" PRIx64
                                            " --epoch %" PRIu64 " --algorithm %s --json",
                                            row.n, row.seed, row.epoch, row.algorithm));
        assert_int_equal(hex_member(object, "fingerprint"), row.fingerprint);
        const json_t *first = member(object, "first"), *last = member(object, "last");
        assert_true(json_array_size(first) > 0);
        for (size_t i = 0; i < json_array_size(first); i++)
            assert_int_equal(edge_value(first, i), row.values[i]);
        size_t tails = json_array_size(last);
        for (size_t i = 0; i < tails; i++)
            assert_int_equal(edge_value(last, i), row.values[row.count - tails + i]);
        json_decref(object);
    }
    fclose(table);
}

static void check_raw(const shuf_permutation *what, unsigned width, const char *bytes, size_t size)
{
    uint64_t count, *values = expected_values(what, &count);
    assert_int_equal(size, count * width);
    void *aligned = malloc(size + 1);
    memcpy(aligned, bytes, size);
    assert_true(expected_equal(values, aligned, width, count));
    free(aligned);
    free(values);
}

static void raw_values(void **state)
{
    (void)state;
    size_t size;
    shuf_permutation what = {.n = 1001, .seed = UINT64_MAX, .epoch = UINT64_C(1) << 40};
    char *bytes = succeed(&size, "permute --n 1_001 --seed 18446744073709551615 --epoch 1024Gi "
                                 "--out -");
    check_raw(&what, 4, bytes, size);
    free(bytes);
    what.dtype = SHUF_I64;
    bytes = succeed(&size, "permute --n 1001 --seed 0xffffffffffffffff --epoch 0x10000000000 "
                           "--dtype i64 --out -");
    check_raw(&what, 8, bytes, size);
    free(bytes);
}

static void slices_and_shards(void **state)
{
    (void)state;
    size_t size;
    shuf_permutation slice = {
        .n = 1001, .seed = 7, .view = SHUF_VIEW_SLICE, .offset = 10, .count = 20, .stride = 3};
    char *bytes =
        succeed(&size, "permute --n 1001 --seed 7 --offset 10 --count 20 --stride 3 --out -");
    check_raw(&slice, 4, bytes, size);
    free(bytes);
    slice.count = 331; /* what remains: 10 + 330 * 3 = 1000 */
    bytes = succeed(&size, "permute --n 1001 --seed 7 --offset 10 --stride 3 --out -");
    check_raw(&slice, 4, bytes, size);
    free(bytes);
    slice.count = 991;
    slice.stride = 1;
    bytes = succeed(&size, "permute --n 1001 --seed 7 --offset 10 --out -");
    check_raw(&slice, 4, bytes, size);
    free(bytes);
    shuf_permutation shard = {.n = 1001, .seed = 7, .view = SHUF_VIEW_SHARD, .rank = 3, .world = 4};
    bytes = succeed(&size, "permute --n 1001 --seed 7 --rank 3 --world 4 --out -");
    check_raw(&shard, 4, bytes, size);
    free(bytes);
    shard.drop_last = true;
    bytes = succeed(&size, "permute --n 1001 --seed 7 --rank 3 --world 4 --drop-last --out -");
    check_raw(&shard, 4, bytes, size);
    free(bytes);
}

/* ---- Formats ------------------------------------------------------------ */

/* The whole header as NumPy writes it: 128 bytes, of which 118 stand behind the length. */
static void check_npy(const char *name, const char *arguments, const char *dictionary,
                      const shuf_permutation *what, unsigned width)
{
    char path[128], header[129], *bytes;
    size_t size;
    snprintf(path, sizeof path, "%s/%s", directory, name);
    snprintf(header, sizeof header, "%-117s\n", dictionary);
    free(succeed(NULL, "permute %s --out %s", arguments, path));
    bytes = read_file(path, &size);
    assert_true(size >= 128);
    assert_memory_equal(bytes, "\x93NUMPY\x01\x00\x76\x00", 10);
    assert_memory_equal(bytes + 10, header, 118);
    check_raw(what, width, bytes + 128, size - 128);
    free(bytes);
    remove_file(name);
}

static void npy_files(void **state)
{
    (void)state;
    shuf_permutation what = {.n = 1001, .seed = 7};
    check_npy("a.npy", "--n 1001 --seed 7",
              "{'descr': '<u4', 'fortran_order': False, 'shape': (1001,), }", &what, 4);
    check_npy("b.npy", "--n 1001 --seed 7 --dtype u64",
              "{'descr': '<u8', 'fortran_order': False, 'shape': (1001,), }", &what, 8);
    check_npy("i", "--n 1001 --seed 7 --dtype i64 --format npy",
              "{'descr': '<i8', 'fortran_order': False, 'shape': (1001,), }", &what, 8);
    what.epochs = 1;
    check_npy("c.npy", "--n 1001 --seed 7 --epochs 0:1",
              "{'descr': '<u4', 'fortran_order': False, 'shape': (1, 1001), }", &what, 4);
    what.epoch = 5;
    what.epochs = 3;
    check_npy("d.npy", "--n 1001 --seed 7 --epochs 5:8",
              "{'descr': '<u4', 'fortran_order': False, 'shape': (3, 1001), }", &what, 4);
}

/* One value a line; of a batch, one row a line. Large enough to cross its buffers. */
static void check_text(const char *text, const shuf_permutation *what, uint64_t per_line)
{
    uint64_t count, *values = expected_values(what, &count);
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

static void text_files(void **state)
{
    (void)state;
    shuf_permutation what = {.n = 200003, .seed = 7};
    char *text = succeed(NULL, "permute --n 200003 --seed 7 --dtype u64 --out - --format text");
    check_text(text, &what, 1);
    free(text);
    char path[128];
    size_t size;
    snprintf(path, sizeof path, "%s/rows.txt", directory);
    what = (shuf_permutation){.n = 30011, .seed = 7, .epoch = 2, .epochs = 5};
    free(succeed(NULL, "permute --n 30011 --seed 7 --epochs 2:7 --out %s", path));
    text = read_file(path, &size);
    check_text(text, &what, 30011);
    free(text);
    remove_file("rows.txt");
}

static void summary_for_people(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "\nalgorithm   philox24\n", "\nn           10\n",      "\nseed        7\n",
        "\nepoch       0\n",        "\nslice       all\n",     "\nshape       10 u32 (40 B)\n",
        "\nfirst       5 9 8 0\n",  "\nlast        2 4 3 7\n", "\non device   ",
        "\nseen        ",           "\nrate        ",          "\nfingerprint 0x"};
    char *text = succeed(NULL, "permute --n 10 --seed 7");
    char start[64];
    snprintf(start, sizeof start, "backend     %s, ", backend);
    assert_memory_equal(text, start, strlen(start));
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        if (!strstr(text, lines[i]))
            fprintf(stderr, "no '%s' in:\n%s", lines[i], text);
        assert_non_null(strstr(text, lines[i]));
    }
    free(text);
}

static void summary_as_json(void **state)
{
    (void)state;
    json_t *o = parse_json(succeed(NULL, "permute --n 1001 --seed 0xffffffffffffffff --epochs 1:3 "
                                         "--rank 1 --world 2 --json"));
    shuf_permutation what = {.n = 1001,
                             .seed = UINT64_MAX,
                             .epoch = 1,
                             .epochs = 2,
                             .view = SHUF_VIEW_SHARD,
                             .rank = 1,
                             .world = 2};
    uint64_t count, *values = expected_values(&what, &count);
    assert_string_equal(json_string_value(member(o, "backend")), backend);
    assert_string_equal(json_string_value(member(o, "seed")), "18446744073709551615");
    assert_string_equal(json_string_value(member(o, "epoch")), "1");
    assert_string_equal(json_string_value(member(o, "dtype")), "u32");
    assert_int_equal(json_integer_value(member(o, "rows")), 2);
    assert_int_equal(json_integer_value(member(o, "count")), 501);
    assert_int_equal(json_integer_value(member(o, "bytes")), 2 * 501 * 4);
    assert_int_equal(json_integer_value(member(member(o, "slice"), "world")), 2);
    assert_true(json_real_value(member(o, "device_seconds")) > 0);
    assert_true(json_real_value(member(o, "seen_seconds")) > 0);
    assert_true(json_real_value(member(o, "values_per_second")) > 0);
    assert_int_equal(hex_member(o, "fingerprint"), expected_fingerprint(values, count));
    assert_int_equal(edge_value(member(o, "last"), 3), values[count - 1]);
    free(values);
    json_decref(o);
}

/* Beside the values on stdout, the summary is asked for and goes to stderr. */
static void summary_beside_values(void **state)
{
    (void)state;
    struct command c;
    json_error_t error;
    assert_int_equal(run(&c, 0, "permute --n 10 --seed 7 --out - --format text --json"), 0);
    assert_memory_equal(c.out.bytes, "5\n9\n", 4);
    json_t *o = json_loads(c.err.bytes, 0, &error);
    assert_non_null(o);
    assert_string_equal(json_string_value(member(o, "format")), "text");
    json_decref(o);
    command_free(&c);
    assert_int_equal(run(&c, 0, "permute --n 10 --seed 7 --out -"), 0);
    assert_int_equal(c.err.size, 0);
    command_free(&c);
}

static void status_and_version(void **state)
{
    (void)state;
    json_t *o = parse_json(succeed(NULL, "status --json"));
    assert_int_equal(json_integer_value(member(o, "pid")), daemon_.pid);
    assert_string_equal(json_string_value(member(o, "backend")), backend);
    assert_string_equal(json_string_value(member(o, "socket")), daemon_.socket);
    assert_int_equal(json_integer_value(member(o, "clients")), 1);
    json_decref(o);
    char *text = succeed(NULL, "status"), expected[64];
    assert_non_null(strstr(text, "\nclients     1\n"));
    free(text);
    o = parse_json(succeed(NULL, "version --json"));
    assert_string_equal(json_string_value(member(o, "shufctl")), shuf_version());
    assert_memory_equal(json_string_value(member(o, "daemon")), "shufd ", 6);
    json_decref(o);
    snprintf(expected, sizeof expected, "shufctl %s\nshufd ", shuf_version());
    text = succeed(NULL, "version");
    assert_memory_equal(text, expected, strlen(expected));
    free(text);
    o = parse_json(succeed(NULL, "version --json --socket /nonexistent/s"));
    assert_true(json_is_null(member(o, "daemon")));
    json_decref(o);
}

/* ---- Mistakes ----------------------------------------------------------- */

static void every_mistake(void **state)
{
    (void)state;
    static const struct {
        const char *arguments;
        int status;
        const char *words;
    } rows[] = {
        {"", 64, "Usage: shufctl VERB"},
        {"shuffle", 64, "verb 'shuffle': expected permute, status, version, help"},
        {"help shuffle", 64, "verb 'shuffle'"},
        {"permute --bogus", 64, "unrecognized option '--bogus'"},
        {"permute 10", 64, "argument '10'"},
        {"permute --seed 7", 64, "--n: missing"},
        {"permute --n 10", 64, "--seed: missing"},
        {"permute --n 0 --seed 7", 64, "n 0: expected 1 to 2^62"},
        {"permute --n 1.5 --seed 7", 64, "--n 1.5: is not whole"},
        {"permute --n -1 --seed 7", 64, "--n -1: is negative"},
        {"permute --n 1e30 --seed 7", 64, "--n 1e30: is too large"},
        {"permute --n ten --seed 7", 64, "--n ten: expected a whole number"},
        {"permute --n 10 --seed 2e19", 64, "--seed 2e19: is too large"},
        {"permute --n 4611686018427387905 --seed 7", 64, "n 4611686018427387905"},
        {"permute --n 10 --seed 7 --epochs 3:3", 64, "--epochs 3:3: no epoch"},
        {"permute --n 10 --seed 7 --epochs 3", 64, "--epochs 3: expected A:B"},
        {"permute --n 10 --seed 7 --epochs :3", 64, "--epochs ''"},
        {"permute --n 10 --seed 7 --epochs 0:x", 64, "--epochs x"},
        {"permute --n 10 --seed 7 --epoch 1 --epochs 0:3", 64, "--epochs: excludes --epoch"},
        {"permute --n 10 --seed 7 --algorithm sattolo", 64, "sattolo"},
        {"permute --n 10 --seed 7 --offset 10", 64, "offset 10: expected less than n = 10"},
        {"permute --n 10 --seed 7 --count 11", 64, "count 11: expected at most 10"},
        {"permute --n 10 --seed 7 --count 0", 64, "count 0"},
        {"permute --n 10 --seed 7 --stride 0", 64, "stride 0"},
        {"permute --n 10 --seed 7 --rank 2 --world 2", 64, "rank 2: expected less than world"},
        {"permute --n 10 --seed 7 --rank 0 --world 0", 64, "world 0"},
        {"permute --n 10 --seed 7 --rank 0", 64, "--world: missing"},
        {"permute --n 10 --seed 7 --world 2", 64, "--rank: missing"},
        {"permute --n 10 --seed 7 --drop-last", 64, "--rank: missing"},
        {"permute --n 10 --seed 7 --rank 0 --world 2 --offset 1", 64, "excludes --offset"},
        {"permute --n 10 --seed 7 --dtype f32", 64, "--dtype f32: expected u32, u64 or i64"},
        {"permute --n 10 --seed 7 --dtype auto", 64, "--dtype auto: expected u32, u64 or i64"},
        {"permute --n 4294967297 --seed 7 --dtype u32", 64, "dtype u32: too small"},
        {"permute --n 10 --seed 7 --format csv --out x", 64, "--format csv: expected npy"},
        {"permute --n 10 --seed 7 --format npy", 64, "--format: nothing is written"},
        {"permute --n 2^62 --seed 7", 64, "--n 2^62"},
        {"permute --n 4611686018427387904 --seed 7 --epochs 0:4", 71, "epochs 4"},
        {"permute --n 10 --seed 7 --out /nonexistent/file", 73, "/nonexistent/file: cannot create"},
        {"permute --n 10 --seed 7 --out /tmp", 73, "/tmp: cannot create: Is a directory"},
        {"permute --n 10 --seed 7 --out /dev/full", 74, "/dev/full: No space left on device"},
        {"permute --n 10 --seed 7 --out /dev/full --format text", 74, "/dev/full: No space"},
        {"permute --n 35184372088832 --seed 7", 71, ""},
        {"permute --n 10 --seed 7 --socket /nonexistent/s", 69,
         "start one: shufd --socket /nonexistent/s"},
        {"status --socket /nonexistent/s", 69, "start one: shufd --socket /nonexistent/s"},
        {"status now", 64, "argument 'now'"},
        {"help permute status", 64, "at most one verb"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct command c;
        int status = run(&c, 0, "%s", rows[i].arguments);
        if (status != rows[i].status || !strstr(c.err.bytes, rows[i].words))
            fprintf(stderr, "shufctl %s: %d\n%s", rows[i].arguments, status, c.err.bytes);
        assert_int_equal(status, rows[i].status);
        assert_non_null(strstr(c.err.bytes, rows[i].words));
        assert_memory_equal(c.err.bytes + c.err.size - 1, "\n", 1);
        assert_int_equal(c.out.size, 0);
        command_free(&c);
    }
}

static void help_is_no_mistake(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"--help", "permute   "},        {"help", "permute   "},
        {"help permute", "--drop-last"}, {"permute --help", "--drop-last"},
        {"help status", "--json"},       {"--version", "shufctl "},
        {"permute --usage", "--epochs"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *text = succeed(NULL, "%s", rows[i][0]);
        assert_non_null(strstr(text, rows[i][1]));
        free(text);
    }
}

/* Standard output that takes nothing is an error for every verb. */
static void full_standard_output(void **state)
{
    (void)state;
    static const char *const verbs[] = {"permute --n 10 --seed 7", "status", "version", "help",
                                        "permute --n 10 --seed 7 --out -"};
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        char script[128];
        struct command c;
        snprintf(script, sizeof script, "exec \"$0\" %s >/dev/full", verbs[i]);
        const char *const argv[] = {"sh", "-c", script, SHUFCTL_PATH, NULL};
        assert_int_equal(command_run(&c, 0, argv), 74);
        assert_non_null(strstr(c.err.bytes, "No space left on device"));
        command_free(&c);
    }
}

/* A reader that has seen enough, with SIGPIPE as usual and ignored. */
static void reader_that_leaves(void **state)
{
    (void)state;
    static const char *const scripts[] = {
        "\"$0\" permute --n 1e6 --seed 7 --out - --format text | head -n 1",
        "trap '' PIPE; \"$0\" permute --n 1e6 --seed 7 --out - --format text | head -n 1"};
    for (int i = 0; i < 2; i++) {
        const char *const argv[] = {"sh", "-c", scripts[i], SHUFCTL_PATH, NULL};
        struct command c;
        assert_int_equal(command_run(&c, 0, argv), 0);
        assert_int_equal(c.err.size, 0);
        assert_true(c.out.size > 0 && strchr(c.out.bytes, '\n') == c.out.bytes + c.out.size - 1);
        command_free(&c);
    }
}

/* ---- Files, terminals, signals ------------------------------------------ */

static void terminals(void **state)
{
    (void)state;
    struct command c;
    assert_int_equal(run(&c, COMMAND_TERMINAL_OUT, "permute --n 10 --seed 7 --out - --format raw"),
                     64);
    assert_int_equal(c.out.size, 0);
    assert_non_null(strstr(c.err.bytes, "binary to a terminal; expected --format text"));
    command_free(&c);
    assert_int_equal(run(&c, COMMAND_TERMINAL_OUT, "permute --n 10 --seed 7 --out -"), 0);
    assert_memory_equal(c.out.bytes, "5\r\n9\r\n", 6); /* the terminal adds the \r */
    command_free(&c);
}

/* Long enough for the bar on any machine: text of it takes a while. */
static void progress_bar(void **state)
{
    (void)state;
    struct command c;
    const char *request = "permute --n 2e7 --seed 7 --format text --out /dev/null";
    assert_int_equal(run(&c, COMMAND_TERMINAL_ERR, "%s", request), 0);
    assert_non_null(strstr(c.err.bytes, "% "));
    assert_non_null(strstr(c.err.bytes, " of 80.0 MB"));
    assert_memory_equal(c.err.bytes + c.err.size - 4, "\r\033[K", 4);
    command_free(&c);
    assert_int_equal(run(&c, 0, "%s", request), 0);
    assert_int_equal(c.err.size, 0);
    command_free(&c);
}

static void file_modes_and_links(void **state)
{
    (void)state;
    char path[96], link[96], target[96];
    struct stat status;
    snprintf(path, sizeof path, "%s/values", directory);
    snprintf(link, sizeof link, "%s/link", directory);
    mode_t old = umask(027);
    char *text = succeed(NULL, "permute --n 10 --seed 7 --out %s", path);
    umask(old);
    assert_non_null(strstr(text, "values (raw)"));
    free(text);
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0640);
    assert_int_equal(status.st_size, 40);
    assert_int_equal(symlink("values", link), 0);
    free(succeed(NULL, "permute --n 20 --seed 7 --out %s", link));
    assert_true(readlink(link, target, sizeof target) > 0);
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_size, 80);
    assert_int_equal(files(), 2);
    remove_file("link");
    remove_file("values");
}

static void pipes_are_written_to(void **state)
{
    (void)state;
    char script[256];
    struct command c;
    snprintf(script, sizeof script,
             "mkfifo %s/p && { cat %s/p & \"$0\" permute --n 10 --seed 7 --out %s/p --format text "
             ">/dev/null; wait; test -p %s/p; }",
             directory, directory, directory, directory);
    const char *const argv[] = {"sh", "-c", script, SHUFCTL_PATH, NULL};
    assert_int_equal(command_run(&c, 0, argv), 0);
    assert_string_equal(c.out.bytes, "5\n9\n8\n0\n1\n6\n2\n4\n3\n7\n");
    command_free(&c);
    remove_file("p");
}

static bool wait_for_files(int count)
{
    for (int i = 0; i < 6000 && files() != count; i++)
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    return files() == count;
}

/* What stood in the target before is what stands there after. */
static void signals_leave_nothing(void **state)
{
    (void)state;
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    char path[96];
    size_t size;
    snprintf(path, sizeof path, "%s/values", directory);
    free(succeed(NULL, "permute --n 10 --seed 7 --out %s", path));
    for (int i = 0; i < 3; i++) {
        char text[256];
        struct line line;
        struct command c;
        snprintf(text, sizeof text, "permute --n 1e8 --seed 7 --format text --out %s", path);
        split(&line, text);
        command_start(&c, 0, line.argv);
        assert_true(wait_for_files(2));
        kill(c.pid, signals[i]);
        command_finish(&c);
        assert_int_equal(c.status, 128 + signals[i]);
        assert_int_equal(files(), 1);
        command_free(&c);
    }
    free(read_file(path, &size));
    assert_int_equal(size, 40);
    remove_file("values");
}

/* A limit on the size of files stands for a disk that fills. */
static void full_disk(void **state)
{
    (void)state;
    static const char *const formats[] = {"raw", "npy", "text"};
    for (int i = 0; i < 3; i++) {
        char script[256];
        struct command c;
        snprintf(script, sizeof script,
                 "trap '' XFSZ; ulimit -f 100; exec \"$0\" permute --n 1e6 --seed 7 --format %s "
                 "--out %s/values",
                 formats[i], directory);
        const char *const argv[] = {"sh", "-c", script, SHUFCTL_PATH, NULL};
        assert_int_equal(command_run(&c, 0, argv), 74);
        assert_non_null(strstr(c.err.bytes, "File too large"));
        command_free(&c);
        assert_int_equal(files(), 0);
    }
}

static void unwritable_directory(void **state)
{
    (void)state;
    if (geteuid() == 0)
        skip(); /* root writes anywhere */
    struct command c;
    assert_int_equal(run(&c, 0, "permute --n 10 --seed 7 --out /usr/x"), 77);
    assert_non_null(strstr(c.err.bytes, "/usr/x: cannot create: Permission denied"));
    command_free(&c);
}

static int start(void **state)
{
    (void)state;
    strcpy(directory, "/tmp/shuf-files-XXXXXX");
    if (!mkdtemp(directory) || !harness_start(&daemon_, backend, NULL))
        return -1;
    return setenv("SHUFD_SOCKET", daemon_.socket, 1);
}

static int stop(void **state)
{
    (void)state;
    bool empty = rmdir(directory) == 0;
    return harness_stop(&daemon_) && empty ? 0 : -1;
}

int main(int argc, char **argv)
{
    backend = harness_backend_or_skip(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_vectors),
        cmocka_unit_test(published_digest),
        cmocka_unit_test(golden_summaries),
        cmocka_unit_test(raw_values),
        cmocka_unit_test(slices_and_shards),
        cmocka_unit_test(npy_files),
        cmocka_unit_test(text_files),
        cmocka_unit_test(summary_for_people),
        cmocka_unit_test(summary_as_json),
        cmocka_unit_test(summary_beside_values),
        cmocka_unit_test(status_and_version),
        cmocka_unit_test(every_mistake),
        cmocka_unit_test(help_is_no_mistake),
        cmocka_unit_test(full_standard_output),
        cmocka_unit_test(reader_that_leaves),
        cmocka_unit_test(terminals),
        cmocka_unit_test(progress_bar),
        cmocka_unit_test(file_modes_and_links),
        cmocka_unit_test(pipes_are_written_to),
        cmocka_unit_test(signals_leave_nothing),
        cmocka_unit_test(full_disk),
        cmocka_unit_test(unwritable_directory),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
