/* SPDX-License-Identifier: MIT
 *
 * `shufctl shuffle` of arrays in both formats, forward and inverse: its results, its reports, and
 * the message of every mistake. An interrupted run leaves no file.
 */
#include "shuf.h"
#include "support/cmocka_all.h"
#include "support/expected.h"
#include "support/random.h"
#include "support/shufctl.h"
#include "support/take.h"
#include "support/wire.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void write_file(const char *name, const char *header, size_t header_size, const char *bytes,
                       size_t size)
{
    FILE *file = fopen(shufctl_path(name), "we");
    assert_non_null(file);
    assert_int_equal(fwrite(header, 1, header_size, file), header_size);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static char *random_bytes(size_t size)
{
    char *bytes = malloc(size);
    for (size_t i = 0; i < size; i++)
        bytes[i] = (char)(random_u64() >> 9);
    return bytes;
}

/* Makes a header of this version, with these values in its dictionary. Returns its size. */
static size_t make_header(char out[256], int version, const char *descr, const char *shape)
{
    const size_t prefix = version == 1 ? 10 : 12;
    memset(out, 0, 256);
    const size_t dict =
        (size_t)snprintf(out + prefix, 256 - prefix,
                         "{'descr': %s, 'fortran_order': False, 'shape': %s, }  \n", descr, shape);
    memcpy(out, "\x93NUMPY", 6);
    out[6] = (char)version;
    out[8] = (char)dict;
    return prefix + dict;
}

static void check_records(const char *algorithm, uint64_t n, uint64_t record, uint64_t epoch,
                          const char *in, const char *out)
{
    const shuf_request request = {
        .permutation = {.algorithm = algorithm, .n = n, .seed = 7, .epoch = epoch}};
    uint64_t *p = expected_values(&request, NULL);
    for (uint64_t i = 0; i < n; i++)
        assert_memory_equal(out + i * record, in + p[i] * record, record);
    free(p);
}

/* ---- Forward and inverse ---- */

static void check_npy(int version, const char *descr, const char *shape, uint64_t n,
                      uint64_t record)
{
    char header[256];
    size_t size;
    const size_t front = make_header(header, version, descr, shape);
    char *in = random_bytes(n * record);
    write_file("in.npy", header, front, in, n * record);
    free(shufctl_succeed(NULL, "shuffle --in %s --seed 7 --epoch 3 --out %s",
                         shufctl_path("in.npy"), shufctl_path("out.npy")));
    char *out = shufctl_read(shufctl_path("out.npy"), &size);
    assert_int_equal(size, front + n * record);
    assert_memory_equal(out, header, front);
    check_records("primefold", n, record, 3, in, out + front);
    free(out);
    out = shufctl_succeed(&size, "shuffle --in %s --seed 7 --epoch 3 --inverse --out - --record %d",
                          shufctl_path("out.npy"), (int)record);
    assert_int_equal(size, front + n * record);
    assert_memory_equal(out + front, in, n * record);
    free(out);
    free(in);
    shufctl_remove("in.npy");
    shufctl_remove("out.npy");
}

static void npy_files_are_shuffled(void **state)
{
    (void)state;
    random_start("npy_files_are_shuffled");
    check_npy(1, "'<f4'", "(1000, 3)", 1000, 12);
    check_npy(1, "'|u1'", "(1, 65536)", 1, 65536);
    check_npy(1, "'|u1'", "(20, 3, 224, 224)", 20, 150528);
    check_npy(1, "'<f8'", "(3, 131073)", 3, 1048584);
    check_npy(2, "[('a', '<f8'), ('b', '|S3')]", "(777,)", 777, 11);
    check_npy(3, "'<U5'", "(50, 2, 3)", 50, 120);
}

/* Arrays of more than one part are shuffled in place, with every algorithm. */
static void raw_files_are_shuffled(void **state)
{
    (void)state;
    static const char *const algorithms[] = {"primefold", "philox24", "lcg"};
    random_start("raw_files_are_shuffled");
    for (int i = 0; i < 3; i++) {
        size_t size;
        const uint64_t n = 100000 - (uint64_t)i, record = 97;
        char *in = random_bytes(n * record);
        write_file("records", "", 0, in, n * record);
        for (int inverse = 0; inverse < 2; inverse++) {
            free(shufctl_succeed(NULL,
                                 "shuffle --in %s --record 97 --seed 7 --algorithm %s --out %s%s",
                                 shufctl_path("records"), algorithms[i], shufctl_path("records"),
                                 inverse ? " --inverse" : ""));
            char *out = shufctl_read(shufctl_path("records"), &size);
            assert_int_equal(size, n * record);
            if (inverse)
                assert_memory_equal(out, in, n * record);
            else
                check_records(algorithms[i], n, record, 0, in, out);
            free(out);
        }
        free(in);
        shufctl_remove("records");
        assert_int_equal(shufctl_count_files(), 0);
    }
}

/* ---- Reports ---- */

static void summary_as_text_and_json(void **state)
{
    (void)state;
    write_file("s", "", 0, "0123456789", 10);
    char *text = shufctl_succeed(NULL, "shuffle --in %s --record 2 --seed 7 --inverse --out %s",
                                 shufctl_path("s"), shufctl_path("s"));
    assert_non_null(strstr(text, "algorithm   primefold, inverse\n"));
    assert_non_null(strstr(text, "records     5 of 2 bytes (10 B)\n"));
    assert_non_null(strstr(text, " (raw)\n"));
    free(text);
    json_t *object = json_parse(
        shufctl_succeed(NULL, "shuffle --in %s --record 1 --seed 7 --epoch 9 --out %s --json",
                        shufctl_path("s"), shufctl_path("s")));
    assert_string_equal(json_member_text(object, "algorithm"), "primefold");
    assert_string_equal(json_member_text(object, "seed"), "7");
    assert_string_equal(json_member_text(object, "epoch"), "9");
    assert_string_equal(json_member_text(object, "in"), shufctl_path("s"));
    assert_string_equal(json_member_text(object, "format"), "raw");
    assert_int_equal(json_member_integer(object, "n"), 10);
    assert_int_equal(json_member_integer(object, "record"), 1);
    assert_int_equal(json_member_integer(object, "bytes"), 10);
    assert_true(json_is_false(json_member(object, "inverse")));
    assert_true(json_is_real(json_member(object, "total_seconds")));
    json_decref(object);
    struct command c;
    assert_int_equal(
        shufctl_run(&c, 0, "shuffle --in %s --record 1 --seed 7 --out - --json", shufctl_path("s")),
        0);
    assert_int_equal(c.out.size, 10);
    assert_non_null(strstr(c.err.bytes, "\"record\": 1"));
    command_free(&c);
    shufctl_remove("s");
}

/* ---- Mistakes ---- */

static void expect_refused(int status, const char *words, const char *options)
{
    char arguments[512];
    snprintf(arguments, sizeof arguments, "shuffle %s", options);
    shufctl_fail(status, words, arguments);
}

static void expect_file_refused(int status, const char *words, const char *more)
{
    char options[256];
    snprintf(options, sizeof options, "--in %s --seed 7 --out %s %s", shufctl_path("bad"),
             shufctl_path("out"), more);
    expect_refused(status, words, options);
}

static void expect_input_refused(int status, const char *words, const char *path)
{
    char options[256];
    snprintf(options, sizeof options, "--in %s --seed 7 --out %s", path, shufctl_path("out"));
    expect_refused(status, words, options);
}

static void wrong_options_are_refused(void **state)
{
    (void)state;
    expect_refused(64, "--in: missing", "--seed 7 --out x");
    expect_refused(64, "--seed: missing", "--in x --out y");
    expect_refused(64, "--out: missing", "--in x --seed 7");
    expect_refused(64, "--record 0: expected 1 to 2^63 - 1", "--in x --seed 7 --out y --record 0");
    expect_refused(64, "--record 64Ki1", "--in x --seed 7 --out y --record 64Ki1");
    expect_refused(66, "--in /nowhere/x: cannot open: No such file",
                   "--in /nowhere/x --seed 7 --out y");
    expect_refused(66, "--in /dev/null: expected a regular file or a pipe",
                   "--in /dev/null --seed 7 --out y");
    expect_refused(66, "--in /: expected a regular file or a pipe", "--in / --seed 7 --out y");
    expect_refused(64, "--algorithm \"\": expected primefold",
                   "--in x --seed 7 --out y --algorithm=");
}

static void wrong_files_are_refused(void **state)
{
    (void)state;
    char header[256];
    static const struct {
        const char *descr, *shape;
        size_t bytes;
        const char *words;
    } cases[] = {
        {"'|O'", "(2,)", 16, "dtype '|O': objects are not in the file"},
        {"'<f4'", "(3,)", 11, "11 bytes after its header, expected 12 for"},
        {"'<f4'", "(3,)", 13, "13 bytes after its header, expected 12 for"},
        {"'<f4'", "(0, 3)", 4, "4 bytes after its header, expected 0 for"},
        {"'<f4'", "()", 4, "shape (): a single value"},
        {"'\033]52;c;\x9b\a'", "(2,)", 16,
         "'?]52;c;?"
         "?'"}, /* escape sequences are not printed */
    };
    char *bytes = calloc(1, 65540);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t front = make_header(header, 1, cases[i].descr, cases[i].shape);
        write_file("bad", header, front, bytes, cases[i].bytes);
        expect_file_refused(65, cases[i].words, "");
    }
    size_t front = make_header(header, 1, "'<f4'", "(3,)");
    write_file("bad", header, front, bytes, 12);
    expect_file_refused(64, "--record 8: the records of", "--record 8");
    expect_file_refused(64, "algorithm \"knuth\": expected primefold", "--algorithm knuth");
    write_file("bad", header, front - 5, "", 0);
    expect_file_refused(65, "header: cut off", "");
    header[6] = 9;
    write_file("bad", header, front, bytes, 12);
    expect_file_refused(65, "format version 9.0", "");
    header[6] = 2;
    header[10] = 0x20; /* the header claims 2 MiB */
    header[11] = 0;
    write_file("bad", header, front, bytes, 12);
    expect_file_refused(65, "header: cut off", "");
    assert_int_equal(truncate(shufctl_path("bad"), 3 << 20), 0);
    expect_file_refused(65, "header: longer than 1 MiB; expected a shorter one", "");
    write_file("bad", "", 0, bytes, 12);
    expect_file_refused(64, "--record: missing", "");
    write_file("bad.npy", "", 0, bytes, 12);
    expect_input_refused(
        65, "bad.npy: no header of an .npy file; expected a file that numpy.save writes",
        shufctl_path("bad.npy"));
    shufctl_remove("bad.npy");
    expect_input_refused(66, "No such device or address; expected a regular file or a pipe",
                         shufctl_daemon.socket);
    write_file("bad", "PK\3\4", 4, bytes, 12);
    expect_file_refused(65, "a zip archive, such as an .npz of several arrays; expected one .npy",
                        "");
    write_file("bad", "", 0, bytes, 12);
    expect_file_refused(65, "12 bytes, expected a multiple of --record 5", "--record 5");
    write_file("bad", "", 0, "", 0);
    expect_file_refused(65, "no records in it", "--record 5");
    free(bytes);
    shufctl_remove("bad");
    assert_int_equal(shufctl_count_files(), 0);
}

/* The array is written as it is, but the other options are checked. */
static void empty_arrays_are_shuffled(void **state)
{
    (void)state;
    static const char *const shapes[] = {"(0,)", "(0, 3)", "(4, 0)"};
    static const char *const options[] = {"", " --inverse", " --algorithm philox24"};
    char header[256];
    struct command c;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        size_t front = make_header(header, 1, "'<f4'", shapes[i]);
        write_file("bad", header, front, "", 0);
        for (size_t k = 0; k < sizeof options / sizeof *options; k++) {
            assert_int_equal(shufctl_script(&c, "\"$0\" shuffle --in %s/bad --seed 7 --out -%s",
                                            shufctl_directory, options[k]),
                             0);
            assert_int_equal(c.out.size, front);
            assert_memory_equal(c.out.bytes, header, front);
            command_free(&c);
        }
        expect_file_refused(64, "algorithm \"knuth\": expected primefold", "--algorithm knuth");
    }
    assert_int_equal(shufctl_script(&c, "\"$0\" shuffle --in %s/bad --seed 7 --out %s/out",
                                    shufctl_directory, shufctl_directory),
                     0);
    assert_non_null(strstr(c.out.bytes, "4 of 0 bytes (0 B)"));
    command_free(&c);
    shufctl_remove("out");
    shufctl_remove("bad");
    assert_int_equal(shufctl_count_files(), 0);
}

/* Input from a pipe, from standard input and from a FIFO, both raw and as .npy. */
static void pipes_are_shuffled(void **state)
{
    (void)state;
    enum { N = 30011, RECORD = 97 };
    static const char *const commands[] = {
        "cat in | \"$0\" shuffle --in -", "cat in | \"$0\" shuffle --in /dev/stdin",
        "exec <in; \"$0\" shuffle --in -",
        "exec <in10; dd bs=10 count=1 of=/dev/null 2>/dev/null; \"$0\" shuffle --in -",
        "mkfifo f; cat in >f & \"$0\" shuffle --in f"};
    struct command c;
    random_start("pipes_are_shuffled");
    char *in = random_bytes(N * RECORD);
    write_file("in", "", 0, in, N * RECORD);
    write_file("in10", "0123456789", 10, in, N * RECORD);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        assert_int_equal(shufctl_script(&c, "cd %s; %s --record 97 --seed 7 --epoch 3 --out -",
                                        shufctl_directory, commands[i]),
                         0);
        assert_int_equal(c.err.size, 0);
        assert_int_equal(c.out.size, N * RECORD);
        check_records("primefold", N, RECORD, 3, in, c.out.bytes);
        command_free(&c);
    }
    shufctl_remove("in");
    shufctl_remove("in10");
    shufctl_remove("f");
    free(in);
    assert_int_equal(shufctl_count_files(), 0);
}

static void wrong_pipe_sizes_are_refused(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"printf 012 | \"$0\" shuffle --in - --record 2 --seed 7 --out -",
         "3 bytes, expected a multiple"},
        {"printf '' | \"$0\" shuffle --in - --record 2 --seed 7 --out -", "no records in it"},
        {"printf 01 | TMPDIR=/nowhere \"$0\" shuffle --in - --record 2 --seed 7 --out -",
         "no temporary file in /nowhere: No such file or directory; set TMPDIR"}};
    struct command c;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_not_equal(shufctl_script(&c, "%s", rows[i][0]), 0);
        assert_non_null(strstr(c.err.bytes, rows[i][1]));
        assert_int_equal(c.out.size, 0);
        command_free(&c);
    }
}

/* The output has the format of the input. A suffix that names another format is refused. */
static void suffix_selects_format(void **state)
{
    (void)state;
    write_file("a.bin", "", 0, "0123", 4);
    write_file("b.dat", "", 0, "0123", 4);
    static const struct {
        const char *in, *out;
        bool good;
    } rows[] = {{"a.bin", "o.npy", false}, {"a.bin", "o.csv", false}, {"a.bin", "o.pt", false},
                {"a.bin", "o.raw", true},  {"a.bin", "o", true},      {"b.dat", "o.dat", true},
                {"b.dat", "o.npz", false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct command c;
        shufctl_run(&c, 0, "shuffle --in %s --record 1 --seed 7 --out %s", shufctl_path(rows[i].in),
                    shufctl_path(rows[i].out));
        assert_int_equal(c.status, rows[i].good ? 0 : 64);
        if (rows[i].good)
            shufctl_remove(rows[i].out);
        else
            assert_non_null(strstr(c.err.bytes, "the output is raw as the input, expected"));
        command_free(&c);
    }
    shufctl_remove("a.bin");
    shufctl_remove("b.dat");
    assert_int_equal(shufctl_count_files(), 0);
}

/* A file of /sys reports a larger size than its contents have. A file that is truncated during the
 * read looks the same. */
static void file_shorter_than_its_size_is_refused(void **state)
{
    (void)state;
    static const char path[] = "/sys/devices/system/cpu/possible";
    struct stat status;
    char options[256];
    size_t size;
    if (stat(path, &status) != 0 || status.st_size == 0)
        skip();
    free(shufctl_read(path, &size));
    if (size >= (size_t)status.st_size)
        skip();
    snprintf(options, sizeof options, "--in %s --record 1 --seed 7 --out %s", path,
             shufctl_path("out"));
    expect_refused(74, "cannot read: it was cut off meanwhile", options);
    assert_int_equal(shufctl_count_files(), 0);
}

static void wrong_outputs_are_refused(void **state)
{
    (void)state;
    write_file("bad", "", 0, "0123", 4);
    char options[256];
    snprintf(options, sizeof options, "--in %s --record 1 --seed 7 --out /nowhere/x",
             shufctl_path("bad"));
    expect_refused(73, "--out /nowhere/x: cannot create", options);
    struct command c;
    assert_int_equal(shufctl_run(&c, 0, "shuffle --in %s --record 1 --seed 7 --out /dev/full",
                                 shufctl_path("bad")),
                     74);
    command_free(&c);
    shufctl_remove("bad");
    assert_int_equal(shufctl_count_files(), 0);
}

/* The file is sparse, and larger than the memory and the disk. ThreadSanitizer leaves too little
 * address space for it. */
static void array_above_disk_size_is_refused(void **state)
{
    (void)state;
    if (TEST_SANITIZED)
        skip();
    write_file("bad", "", 0, "", 0);
    if (truncate(shufctl_path("bad"), (off_t)1 << 42) != 0) {
        assert_int_equal(errno, EFBIG); /* the file system does not allow such a size */
        shufctl_remove("bad");
        skip();
    }
    expect_file_refused(74, "No space left on device", "--record 4096");
    expect_file_refused(74, "No space left on device", "--record 4096 --inverse");
    shufctl_remove("bad");
    assert_int_equal(shufctl_count_files(), 0);
}

enum { LARGE_RECORD = 7, LARGE_N = 5000003, LARGE_BYTES = LARGE_N * LARGE_RECORD };

/* Shuffles the file, and then shuffles the result back. The header has `front` bytes. */
static void check_large(const char *socket, const char *header, size_t front, const char *in)
{
    static const char *const commands[] = {
        "--in in --out out",
        "--in in --out - >out",
        "--in - --out - <in >out",
        "--in pipe --out out & cat in >pipe; wait $!",
        "--inverse --in out --out back",
        "--inverse --in out --out - >back",
    };
    struct command c;
    write_file("in", header, front, in, LARGE_BYTES);
    assert_int_equal(mkfifo(shufctl_path("pipe"), 0600), 0);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        size_t size;
        const bool inverse = strstr(commands[i], "--inverse");
        assert_int_equal(
            shufctl_script(&c,
                           "cd %s; exec \"$0\" shuffle --socket %s --record 7 --seed 7 "
                           "--epoch 2 %s",
                           shufctl_directory, socket, commands[i]),
            0);
        command_free(&c);
        char *out = shufctl_read(shufctl_path(inverse ? "back" : "out"), &size);
        assert_int_equal(size, front + LARGE_BYTES);
        assert_memory_equal(out, header, front);
        if (inverse)
            assert_memory_equal(out + front, in, LARGE_BYTES);
        else
            check_records("primefold", LARGE_N, LARGE_RECORD, 2, in, out + front);
        free(out);
    }
    shufctl_remove("pipe");
}

/* The daemon has no room for the array. So it computes only the permutation, and shufctl
 * moves the records. */
static void array_above_the_budget_is_shuffled(void **state)
{
    (void)state;
    struct harness h;
    struct command c;
    char header[256];
    const char *const extra[] = {"--config", shufctl_path("conf"), NULL};
    FILE *file = fopen(shufctl_path("conf"), "we");
    random_start("array_above_the_budget_is_shuffled");
    char *in = random_bytes(LARGE_BYTES);
    fputs("host_memory = 16Mi\ndevice_memory = 16Mi\n", file);
    fclose(file);
    assert_true(harness_start(&h, shufctl_backend, extra));
    check_large(h.socket, header, make_header(header, 1, "'|V7'", "(5000003,)"), in);
    check_large(h.socket, "", 0, in);
    char *text = shufctl_succeed(NULL, "shuffle --socket %s --record 7 --seed 7 --in %s --out %s",
                                 h.socket, shufctl_path("in"), shufctl_path("in"));
    assert_non_null(strstr(text, "\nshuffled by shufctl\n"));
    assert_non_null(strstr(text, "values/s\ntotal "));
    free(text);
    assert_int_equal(shufctl_script(&c,
                                    "cd %s; trap '' XFSZ; ulimit -f 8; TMPDIR=. exec \"$0\" "
                                    "shuffle --socket %s --record 7 --seed 7 --inverse "
                                    "--in in --out -",
                                    shufctl_directory, h.socket),
                     74);
    assert_non_null(strstr(c.err.bytes, "its temporary copy in .: File too large; set TMPDIR\n"));
    assert_int_equal(c.out.size, 0);
    command_free(&c);
    assert_true(harness_stop(&h));
    free(in);
    shufctl_remove("conf");
    shufctl_remove("in");
    shufctl_remove("out");
    shufctl_remove("back");
    assert_int_equal(shufctl_count_files(), 0);
}

/* ---- Interrupted runs ---- */

/* Waits until the daemon has this number of leases, and no buffers. */
static void await_leases(uint64_t leases)
{
    for (int waited = 0;; waited++) {
        json_t *status = json_parse(shufctl_succeed(NULL, "status --json"));
        const bool is_settled = json_member_integer(status, "buffers") == 0 &&
                                json_member_integer(status, "leases") == leases;
        json_decref(status);
        if (is_settled)
            return;
        assert_true(waited < 1000);
        usleep(10000);
    }
}

/* The signal comes while shufctl reads, shuffles or writes. */
static void interrupt_leaves_no_file(void **state)
{
    (void)state;
    struct command c;
    random_start("interrupt_leaves_no_file");
    write_file("large", "", 0, "", 0);
    assert_int_equal(truncate(shufctl_path("large"), 200 << 20), 0);
    for (int i = 0; i < 4; i++) {
        shufctl_start(&c, 0, "shuffle --in %s --record 100 --seed 7 --out %s",
                      shufctl_path("large"), shufctl_path("out"));
        usleep((useconds_t)random_below(150000));
        kill(c.pid, i % 2 ? SIGINT : SIGTERM);
        command_finish(&c);
        const bool whole = c.status == 0;
        assert_true(whole || c.status == 128 + (i % 2 ? SIGINT : SIGTERM));
        command_free(&c);
        if (whole)
            shufctl_remove("out");
        assert_int_equal(shufctl_count_files(), 1);
    }
    shufctl_remove("large");
    await_leases(0); /* the daemon has freed all memory of the interrupted runs */
}

/* shufctl releases the buffer of the input before anybody reads its output. */
static void buffer_is_released_before_output_is_read(void **state)
{
    (void)state;
    enum { SIZE = 4 << 20 };
    struct command c;
    random_start("buffer_is_released_before_output_is_read");
    char *in = random_bytes(SIZE);
    write_file("in", "", 0, in, SIZE);
    shufctl_start(&c, 0, "shuffle --in %s --record 4096 --seed 7 --out -", shufctl_path("in"));
    await_leases(1);
    command_finish(&c);
    assert_int_equal(c.status, 0);
    assert_int_equal(c.out.size, SIZE);
    check_records("primefold", SIZE / 4096, 4096, 0, in, c.out.bytes);
    command_free(&c);
    free(in);
    shufctl_remove("in");
}

/* shufctl sends the array to the next daemon again. */
static void shuffle_is_repeated_at_next_daemon(void **state)
{
    (void)state;
    struct command c;
    size_t size;
    random_start("shuffle_is_repeated_at_next_daemon");
    const uint64_t n = 400000, record = 100;
    char *in = random_bytes(n * record);
    write_file("in", "", 0, in, n * record);
    for (int i = 0; i < 3; i++) {
        shufctl_start(&c, 0, "shuffle --in %s --record 100 --seed 7 --out %s --wait 10",
                      shufctl_path("in"), shufctl_path("out"));
        usleep((useconds_t)random_below(60000));
        harness_kill(&shufctl_daemon, SIGKILL);
        assert_true(harness_restart(&shufctl_daemon));
        command_finish(&c);
        if (c.status != 0)
            fail_msg("%d: %s", c.status, c.err.bytes);
        command_free(&c);
        char *out = shufctl_read(shufctl_path("out"), &size);
        assert_int_equal(size, n * record);
        check_records("primefold", n, record, 0, in, out);
        free(out);
        shufctl_remove("out");
    }
    free(in);
    shufctl_remove("in");
}

static void buffers_are_listed(void **state)
{
    (void)state;
    shuf *handle;
    shuf_lease *buffer = NULL, *shuffled = NULL;
    const shuf_records records = {
        .algorithm = "lcg", .n = 5, .record = 7, .seed = 2, .inverse = true};
    assert_int_equal(shuf_connect(&handle, shufctl_daemon.socket), SHUF_OK);
    assert_int_equal(take_buffer(handle, 35, NULL, &buffer), SHUF_OK);
    assert_int_equal(take_shuffle(handle, &records, buffer, NULL, &shuffled), SHUF_OK);
    char *text = shufctl_succeed(NULL, "leases");
    assert_non_null(strstr(text, "buffer of 35 bytes\n"));
    assert_non_null(strstr(text, "lcg, back, 5 records of 7 bytes, seed 2, epoch 0\n"));
    free(text);
    json_t *object = json_parse(shufctl_succeed(NULL, "leases --json"));
    const json_t *list = json_member(object, "leases"), *entry = json_array_get(list, 0);
    assert_true(json_is_true(json_member(entry, "buffer")));
    assert_int_equal(json_member_integer(entry, "count"), 35);
    entry = json_array_get(list, 1);
    assert_true(json_is_false(json_member(entry, "buffer")));
    assert_true(json_is_true(json_member(entry, "inverse")));
    assert_int_equal(json_member_integer(entry, "record"), 7);
    assert_string_equal(json_member_text(entry, "algorithm"), "lcg");
    json_decref(object);
    text = shufctl_succeed(NULL, "status");
    assert_non_null(strstr(text, "1 filled by clients\n"));
    free(text);
    shuf_close(handle);
}

static void example_matches_shuffle(void **state)
{
    (void)state;
    struct command c;
    char expected[256];
    size_t used = 0;
    for (uint64_t epoch = 0; epoch < 3; epoch++) {
        const shuf_request request = {.permutation = {.n = 100000, .seed = 7, .epoch = epoch}};
        uint64_t *p = expected_values(&request, NULL);
        const double x = (double)p[0];
        used += (size_t)snprintf(expected + used, sizeof expected - used,
                                 "epoch %" PRIu64 ": %.1f %.1f %.1f %.1f, then %.1f\n", epoch, x,
                                 (double)(float)(x + 0.1), (double)(float)(x + 0.2),
                                 (double)(float)(x + 0.3), (double)p[1]);
        free(p);
    }
    assert_int_equal(command_run(&c, 0, (const char *const[]){ROWS_PATH, "3", NULL}), 0);
    assert_string_equal(c.out.bytes, expected);
    command_free(&c);
}

int main(int argc, char **argv)
{
    shufctl_backend = harness_backend_or_skip(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(npy_files_are_shuffled),
        cmocka_unit_test(raw_files_are_shuffled),
        cmocka_unit_test(summary_as_text_and_json),
        cmocka_unit_test(wrong_options_are_refused),
        cmocka_unit_test(wrong_files_are_refused),
        cmocka_unit_test(empty_arrays_are_shuffled),
        cmocka_unit_test(pipes_are_shuffled),
        cmocka_unit_test(wrong_pipe_sizes_are_refused),
        cmocka_unit_test(suffix_selects_format),
        cmocka_unit_test(file_shorter_than_its_size_is_refused),
        cmocka_unit_test(wrong_outputs_are_refused),
        cmocka_unit_test(array_above_disk_size_is_refused),
        cmocka_unit_test(array_above_the_budget_is_shuffled),
        cmocka_unit_test(interrupt_leaves_no_file),
        cmocka_unit_test(buffer_is_released_before_output_is_read),
        cmocka_unit_test(shuffle_is_repeated_at_next_daemon),
        cmocka_unit_test(buffers_are_listed),
        cmocka_unit_test(example_matches_shuffle),
    };
    return cmocka_run_group_tests(tests, shufctl_set_up, shufctl_tear_down);
}
