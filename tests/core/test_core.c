/* SPDX-License-Identifier: MIT
 *
 * The small parts of core/: suggestions for mistyped names, the names of the types of values, the
 * table of statuses, the default path of the socket, and the overflow ids of the kernel.
 */
#include "algorithm.h"
#include "dtype.h"
#include "error.h"
#include "identity.h"
#include "nearest.h"
#include "socket.h"
#include "support/cmocka_all.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- Names ---- */

static void nearest_name_is_found(void **state)
{
    (void)state;
    static const char *const verbs[] = {"permute", "shuffle", "index",  "gauss",
                                        "uniform", "status",  "leases", NULL};
    static const char *const rows[][2] = {
        {"permut", "permute"},
        {"permuet", "permute"},
        {"PERMUTE", "permute"},
        {"pemute", "permute"},
        {"permuste", "permute"},
        {"shufle", "shuffle"},
        {"lease", "leases"},
        {"unif", "uniform"},
        {"stat", "status"},
        {"guass", "gauss"},
        {"sort", NULL},
        {"x", NULL},
        {"", NULL},
        {"list", NULL},
        {"permutation-of-a-billion", NULL},
        {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
         NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct shuf__nearest nearest = {.text = rows[i][0]};
        for (int v = 0; verbs[v]; v++)
            shuf__nearest_offer(&nearest, verbs[v]);
        if (!rows[i][1] && nearest.name)
            fail_msg("'%s' is near to %s, expected none", rows[i][0], nearest.name);
        if (rows[i][1] && (!nearest.name || strcmp(nearest.name, rows[i][1]) != 0))
            fail_msg("'%s' is near to %s, expected %s", rows[i][0],
                     nearest.name ? nearest.name : "none", rows[i][1]);
    }
}

static void dtype_names_are_parsed(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        shuf_dtype dtype;
    } rows[] = {
        {"u32", SHUF_U32},
        {"uint32", SHUF_U32},
        {"u4", SHUF_U32},
        {"<u4", SHUF_U32},
        {"u64", SHUF_U64},
        {"uint64", SHUF_U64},
        {"<u8", SHUF_U64},
        {"i64", SHUF_I64},
        {"int64", SHUF_I64},
        {"long", SHUF_I64},
        {"<i8", SHUF_I64},
        {"f64", SHUF_F64},
        {"double", SHUF_F64},
        {"float64", SHUF_F64},
        {"<f8", SHUF_F64},
        {"f8", SHUF_F64},
        {"f32", SHUF_F32},
        {"float32", SHUF_F32},
        {"single", SHUF_F32},
        {"<f4", SHUF_F32},
        {"f16", SHUF_F16},
        {"half", SHUF_F16},
        {"float16", SHUF_F16},
        {"<f2", SHUF_F16},
        {"bf16", SHUF_BF16},
        {"bfloat16", SHUF_BF16},
        {"fp16", SHUF_F16},
        {"fp32", SHUF_F32},
        {"fp64", SHUF_F64},
        {"torch.int64", SHUF_I64},
        {"torch.float16", SHUF_F16},
        {"torch.bfloat16", SHUF_BF16},
        {"torch.float", SHUF_F32},
        {"torch.long", SHUF_I64},
        {"np.uint32", SHUF_U32},
        {"numpy.float64", SHUF_F64},
    };
    struct shuf__error error;
    shuf_dtype dtype;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(shuf__dtype_parse("--dtype", rows[i].name, ~0U, &dtype, &error), SHUF_OK);
        assert_int_equal(dtype, rows[i].dtype);
    }
}

static void wrong_dtypes_are_refused(void **state)
{
    (void)state;
    static const struct {
        enum shuf__distribution distribution;
        const char *name, *message;
    } rows[] = {
        {SHUF_DISTRIBUTION_NONE, "auto", "t auto: expected u32, u64 or i64"},
        {SHUF_DISTRIBUTION_NONE, "", "t '': expected u32, u64 or i64"},
        {SHUF_DISTRIBUTION_NONE, "int32",
         "t int32: expected u32, u64 or i64; did you mean uint32?"},
        {SHUF_DISTRIBUTION_NONE, "float32", "t float32: expected u32, u64 or i64"},
        {SHUF_DISTRIBUTION_GAUSS, "u32", "t u32: expected f64, f32, f16 or bf16"},
        {SHUF_DISTRIBUTION_GAUSS, "flaot32",
         "t flaot32: expected f64, f32, f16 or bf16; did you mean float32?"},
        {SHUF_DISTRIBUTION_UNIFORM, "f16", "t f16: expected u32, u64, f64 or f32"},
        {SHUF_DISTRIBUTION_UNIFORM, "u8",
         "t u8: expected u32, u64, f64 or f32; NumPy's u8 (8 bytes) is u64 or <u8 here"},
        {SHUF_DISTRIBUTION_NONE, "i8",
         "t i8: expected u32, u64 or i64; NumPy's i8 (8 bytes) is i64 or <i8 here"},
        {SHUF_DISTRIBUTION_GAUSS, "i8", "t i8: expected f64, f32, f16 or bf16"},
        {SHUF_DISTRIBUTION_GAUSS, "float",
         "t float: expected f64, f32, f16 or bf16; float has 32 bits in C and PyTorch, 64 in "
         "Python "
         "and NumPy"},
        {SHUF_DISTRIBUTION_UNIFORM, "np.float",
         "t np.float: expected u32, u64, f64 or f32; float has 32 bits in C and PyTorch, 64 in "
         "Python and NumPy"},
        {SHUF_DISTRIBUTION_NONE, "float", "t float: expected u32, u64 or i64"},
        {SHUF_DISTRIBUTION_NONE, "torch.int32",
         "t torch.int32: expected u32, u64 or i64; did you mean uint32?"},
        {SHUF_DISTRIBUTION_NONE, "jax.int64", "t jax.int64: expected u32, u64 or i64"},
        {SHUF_DISTRIBUTION_NONE, "torch.", "t torch.: expected u32, u64 or i64"},
        {SHUF_DISTRIBUTION_NONE, "i4", "t i4: expected u32, u64 or i64"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct shuf__error error;
        shuf_dtype dtype;
        assert_int_equal(shuf__dtype_parse("t", rows[i].name, shuf__dtype_set(rows[i].distribution),
                                           &dtype, &error),
                         SHUF_INVALID);
        assert_string_equal(error.text, rows[i].message);
    }
}

static void mistyped_algorithm_gets_a_hint(void **state)
{
    (void)state;
    struct shuf__error error;
    enum shuf_algorithm algorithm;
    assert_int_equal(shuf__algorithm_parse("philox42", &algorithm, &error), SHUF_INVALID);
    assert_string_equal(error.text, "algorithm \"philox42\": expected primefold, philox24 or lcg; "
                                    "did you mean philox24?");
    assert_int_equal(shuf__algorithm_parse("sattolo", &algorithm, &error), SHUF_INVALID);
    assert_string_equal(error.text, "algorithm \"sattolo\": expected primefold, philox24 or lcg");
}

/* ---- Statuses and errors ---- */

static const struct {
    const char *name;
    int number;
} frozen[] = {
    {"OK", 0},         {"INVALID", 1}, {"NO_DAEMON", 2}, {"BUSY", 3},     {"DENIED", 4},
    {"NO_MEMORY", 5},  {"DEVICE", 6},  {"VERSION", 7},   {"PROTOCOL", 8}, {"TIMEOUT", 9},
    {"CANCELLED", 10}, {"IO", 11},     {"INTERNAL", 12},
};
enum { FROZEN = sizeof frozen / sizeof frozen[0] };

static void numbers_are_frozen(void **state)
{
    (void)state;
    for (int i = 0; i < FROZEN; i++)
        assert_string_equal(shuf_status_name((shuf_status)frozen[i].number), frozen[i].name);
}

static void each_status_has_its_own_message(void **state)
{
    (void)state;
    static const shuf_status all[] = {
#define X(name, number, message) SHUF_##name,
        SHUF_STATUS_MAP(X)
#undef X
    };
    enum { ALL = sizeof all / sizeof all[0] };
    assert_in_range(ALL, FROZEN, 100);
    for (int i = 0; i < ALL; i++)
        for (int j = 0; j <= i; j++) {
            const char *a = shuf_status_message(all[i]), *b = shuf_status_message(all[j]);
            assert_int_equal(i == j, strcmp(a, b) == 0);
            assert_int_equal(i == j, all[i] == all[j]);
        }
}

static void unknown_numbers_are_named_unknown(void **state)
{
    (void)state;
    static const int numbers[] = {-1, 4711, INT32_MAX};
    for (int i = 0; i < 3; i++) {
        assert_string_equal(shuf_status_name((shuf_status)numbers[i]), "UNKNOWN");
        assert_int_not_equal(shuf_status_message((shuf_status)numbers[i])[0], '\0');
    }
}

static void fail_writes_and_returns(void **state)
{
    (void)state;
    struct shuf__error error = {0};
    assert_int_equal(shuf__fail(&error, SHUF_INVALID, "n %d: expected %s", 0, "more"),
                     SHUF_INVALID);
    assert_int_equal(error.status, SHUF_INVALID);
    assert_string_equal(error.text, "n 0: expected more");
}

static void fail_shortens_long_messages(void **state)
{
    (void)state;
    struct {
        struct shuf__error error;
        char after;
    } held = {.after = 'x'};
    char text[2 * SHUF__ERROR_TEXT];
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_int_equal(shuf__fail(&held.error, SHUF_IO, "%s", text), SHUF_IO);
    assert_int_equal(strlen(held.error.text), SHUF__ERROR_TEXT - 1);
    assert_int_equal(held.after, 'x');
}

static void messages_of_a_peer_are_made_printable(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"a \033[2Jb\n\t\x7f~", "a ?[2Jb???~"},
        {"\xc3\xa4 \xe2\x82\xac \xf0\x9f\x8e\xb2", "\xc3\xa4 \xe2\x82\xac \xf0\x9f\x8e\xb2"},
        {"\xc2\x9b"
         "2J \xc2\xa0",
         "??2J \xc2\xa0"}, /* U+009B (CSI) begins an escape sequence of a terminal */
        {"\x9b"
         "2J",
         "?2J"},
        /* longer encodings than UTF-8 allows */
        {"\xc0\x9b \xe0\x82\x9b \xf0\x80\x82\x9b", "?? ??? ????"},
        {"\xed\xa0\x80 \xf4\x90\x80\x80 \xff", "??? ???? ?"},
        {"\xe2\x82", "??"},
        {"\xc3", "?"},
        {"\xf0\x9f\x8e", "???"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[32];
        strcpy(text, rows[i][0]);
        shuf__make_printable(text);
        assert_string_equal(text, rows[i][1]);
    }
}

/* ---- The default path of the socket ---- */

enum { NOBODY = 65534 };

static char runtime[] = "/tmp/shuf-socket-XXXXXX"; /* a directory with a file shufd.sock in it */

struct row {
    const char *path, *shufd_socket, *service, *xdg; /* NULL: not set */
    uid_t uid;                                       /* 0: root; any other number: another user */
    enum shuf__socket_side side;
    const char *expected; /* the path, or a part of the error */
    shuf_status status;
};

static void set_variable(const char *name, const char *value)
{
    if (value)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

/* Returns 0 if the row holds. */
static int check_row(const struct row *row)
{
    struct sockaddr_un address;
    struct shuf__error error = {0};
    set_variable("SHUFD_SOCKET", row->shufd_socket);
    set_variable("RUNTIME_DIRECTORY", row->service);
    set_variable("XDG_RUNTIME_DIR", row->xdg);
    if (row->uid != 0 && geteuid() == 0 && seteuid(row->uid) != 0)
        return 1;
    shuf_status status = shuf__socket_address(row->path, row->side, &address, &error);
    const char *got = status == SHUF_OK ? address.sun_path : error.text;
    bool right =
        status == SHUF_OK ? strcmp(got, row->expected) == 0 : strstr(got, row->expected) != NULL;
    if (status == row->status && right)
        return 0;
    fprintf(stderr, "%s: '%s', expected %s: '%s'\n", shuf_status_name(status), got,
            shuf_status_name(row->status), row->expected);
    return 1;
}

static int check_row_in_child(const struct row *row)
{
    int status;
    pid_t child = fork();
    if (child == 0)
        _exit(check_row(row));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

#define SERVE SHUF__SOCKET_SERVE
#define CONNECT SHUF__SOCKET_CONNECT
#define SYSTEM "/run/shufd/shufd.sock"

static void socket_paths_match(void **state)
{
    (void)state;
    static char xdg_socket[64], too_long[200];
    snprintf(xdg_socket, sizeof xdg_socket, "%s/shufd.sock", runtime);
    memset(too_long, 'x', sizeof too_long - 1);
    const struct row rows[] = {
        {"/a", "/b", "/c", runtime, 0, SERVE, "/a", SHUF_OK},
        {"", "/b", "/c", runtime, 0, SERVE, "/b", SHUF_OK},
        {NULL, "/b", NULL, runtime, NOBODY, CONNECT, "/b", SHUF_OK},
        {NULL, "", "/c", runtime, NOBODY, SERVE, "/c/shufd.sock", SHUF_OK},
        {NULL, NULL, "/c:/d", runtime, NOBODY, SERVE, "/c/shufd.sock", SHUF_OK},
        {NULL, NULL, "/c", runtime, NOBODY, CONNECT, xdg_socket,
         SHUF_OK}, /* the variable of a service
                    * does not affect a client */
        {NULL, NULL, NULL, runtime, 0, SERVE, SYSTEM, SHUF_OK},
        {NULL, NULL, NULL, runtime, 0, CONNECT, SYSTEM, SHUF_OK},
        {NULL, NULL, NULL, runtime, NOBODY, SERVE, xdg_socket, SHUF_OK},
        {NULL, NULL, NULL, "/nowhere", NOBODY, SERVE, "/nowhere/shufd.sock", SHUF_OK},
        {NULL, NULL, NULL, "/nowhere", NOBODY, CONNECT, SYSTEM, SHUF_OK},
        {NULL, NULL, NULL, NULL, NOBODY, CONNECT, SYSTEM, SHUF_OK},
        {NULL, NULL, NULL, NULL, NOBODY, SERVE, "XDG_RUNTIME_DIR is not set", SHUF_INVALID},
        {too_long, NULL, NULL, NULL, 0, SERVE, "199 bytes, expected at most 107", SHUF_INVALID},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (geteuid() == 0 || rows[i].uid != 0) /* only root can run the rows of root */
            assert_int_equal(check_row_in_child(&rows[i]), 0);
}

/* This too runs in a process of its own. */
static int check_origins(void)
{
    static const char named[] = "/run/user/7/shufd.sock", system[] = SYSTEM;
    const char *origin;
    int wrong = 0;
#define EXPECT(path, side, text)              \
    origin = shuf__socket_origin(path, side); \
    wrong += !origin || strcmp(origin, text) != 0;
    set_variable("RUNTIME_DIRECTORY", "/run/user/7");
    set_variable("XDG_RUNTIME_DIR", "/run/user/7");
    set_variable("SHUFD_SOCKET", named);
    EXPECT(named, CONNECT, "$SHUFD_SOCKET")
    wrong += shuf__socket_origin(system, CONNECT) != NULL;
    set_variable("SHUFD_SOCKET", NULL);
    EXPECT(named, SERVE, "$RUNTIME_DIRECTORY")
    set_variable("RUNTIME_DIRECTORY", "/run/user/7:/run/user/8");
    EXPECT(named, SERVE, "$RUNTIME_DIRECTORY")
    if (geteuid() == 0) {
        EXPECT(system, SERVE, "the default of root")
        wrong += shuf__socket_origin(named, CONNECT) != NULL || seteuid(NOBODY) != 0;
    }
    EXPECT(named, CONNECT, "$XDG_RUNTIME_DIR")
    EXPECT(system, CONNECT, "the default of the machine")
    wrong += shuf__socket_origin("/run/user/7/x.sock", CONNECT) != NULL;
    set_variable("SHUFD_RUNTIME_DIR", "/srv");
    EXPECT("/srv/shufd.sock", CONNECT, "$SHUFD_RUNTIME_DIR")
#undef EXPECT
    return wrong;
}

static void origins_of_socket_paths_match(void **state)
{
    (void)state;
    int status;
    const pid_t child = fork();
    if (child == 0)
        _exit(check_origins());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* A relative path keeps its meaning after a change of the directory. A path of 108 bytes or more
 * would not fit, and stays relative. */
static void relative_path_becomes_absolute(void **state)
{
    (void)state;
    char expected[64], before[4096], fits[108];
    const struct {
        const char *path, *expected;
    } rows[] = {{"s", expected}, {fits, fits}};
    struct sockaddr_un address;
    struct shuf__error error;
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(runtime), 0);
    snprintf(expected, sizeof expected, "%s/s", runtime);
    memset(fits, 'x', sizeof fits - 1);
    fits[sizeof fits - 1] = '\0';
    for (int side = SERVE; side <= CONNECT; side++)
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            assert_int_equal(shuf__socket_address(rows[i].path, side, &address, &error), SHUF_OK);
            assert_string_equal(address.sun_path, rows[i].expected);
        }
    assert_int_equal(chdir(before), 0);
}

static int make_runtime(void **state)
{
    (void)state;
    char path[64];
    if (!mkdtemp(runtime) || chmod(runtime, 0755) != 0)
        return -1;
    snprintf(path, sizeof path, "%s/shufd.sock", runtime);
    FILE *file = fopen(path, "we");
    return file ? fclose(file) : -1;
}

static int remove_runtime(void **state)
{
    (void)state;
    char path[64];
    snprintf(path, sizeof path, "%s/shufd.sock", runtime);
    return unlink(path) | rmdir(runtime);
}

/* ---- The overflow ids ---- */

/* The reads of files that this process has made. */
static unsigned long count_reads(void)
{
    unsigned long reads = 0;
    FILE *file = fopen("/proc/self/io", "re");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "rchar: %*u wchar: %*u syscr: %lu", &reads), 1);
    fclose(file);
    return reads;
}

static void ids_are_read_once(void **state)
{
    enum { CALLS = 1000, OWN_READS = 4 };
    (void)state;
    assert_false(shuf__uid_is_overflow(0) || shuf__gid_is_overflow(0));
    const unsigned long before = count_reads();
    for (unsigned i = 0; i < CALLS; i++)
        assert_false(shuf__uid_is_overflow(i) || shuf__gid_is_overflow(i));
    assert_true(count_reads() - before <= OWN_READS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nearest_name_is_found),
        cmocka_unit_test(dtype_names_are_parsed),
        cmocka_unit_test(wrong_dtypes_are_refused),
        cmocka_unit_test(mistyped_algorithm_gets_a_hint),
        cmocka_unit_test(numbers_are_frozen),
        cmocka_unit_test(each_status_has_its_own_message),
        cmocka_unit_test(unknown_numbers_are_named_unknown),
        cmocka_unit_test(fail_writes_and_returns),
        cmocka_unit_test(fail_shortens_long_messages),
        cmocka_unit_test(messages_of_a_peer_are_made_printable),
        cmocka_unit_test(socket_paths_match),
        cmocka_unit_test(origins_of_socket_paths_match),
        cmocka_unit_test(relative_path_becomes_absolute),
        cmocka_unit_test(ids_are_read_once),
    };
    return cmocka_run_group_tests(tests, make_runtime, remove_runtime);
}
