/* SPDX-License-Identifier: MIT
 *
 * Named keys: the values of the specification for every kind of request, the users who may use a
 * key, and reloads. Also the memory that holds the bits of keys.
 */
#include "shuf.h"
#include "support/child.h"
#include "support/client.h"
#include "support/cmocka_all.h"
#include "support/command.h"
#include "support/golden.h"
#include "support/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The keys of named_keys.txt by the names "a" and "b", and another one. */
static const char a[] = "000102030405060708090a0b0c0d0e0f",
                  b[] = "b7e151628aed2a6abf7158809cf4f3c7",
                  other[] = "00112233445566778899aabbccddeeff";

enum { GROUP = 4711 };

/* ---- A daemon with keys ---- */

static void write_key(const struct harness *h, const char *name, const char *text)
{
    char path[HARNESS_PATH + 64];
    snprintf(path, sizeof path, "%.*s/keys/%.32s", HARNESS_PATH, h->directory, name);
    shufd_write(path, text);
    assert_int_equal(chmod(path, 0600), 0);
}

static void remove_key(const struct harness *h, const char *name)
{
    char path[HARNESS_PATH + 64];
    snprintf(path, sizeof path, "%.*s/keys/%.32s", HARNESS_PATH, h->directory, name);
    assert_true(unlink(path) == 0 || errno == ENOENT);
}

static void prepare_with_keys(struct harness *h)
{
    static char conf[HARNESS_PATH + 8];
    static const char *const extra[] = {"--config", conf, NULL};
    char text[2 * HARNESS_PATH + 128], keys[HARNESS_PATH + 8];
    assert_true(harness_prepare(h, harness_backend, extra));
    snprintf(conf, sizeof conf, "%s/conf", h->directory);
    snprintf(keys, sizeof keys, "%.*s/keys", HARNESS_PATH, h->directory);
    snprintf(text, sizeof text,
             "keys = %s\nsocket_mode = 0666\nlog_level = debug\nlog_rate = 0\n"
             "host_memory = 16Mi\ndevice_memory = 16Mi\n",
             keys);
    shufd_write(conf, text);
    assert_int_equal(mkdir(keys, 0700) | chmod(h->directory, 0755), 0);
    write_key(h, "a", a);
    write_key(h, "b", b);
}

static int start(void **state)
{
    static struct harness h;
    prepare_with_keys(&h);
    *state = &h;
    return harness_restart(&h) ? 0 : -1;
}

static int stop(void **state)
{
    static const char *const files[] = {"a", "b", "c", "b.group", "late"};
    struct harness *h = *state;
    char keys[HARNESS_PATH + 8];
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        remove_key(h, files[i]);
    snprintf(keys, sizeof keys, "%.*s/keys", HARNESS_PATH, h->directory);
    assert_int_equal(rmdir(keys), 0);
    return harness_stop(h) ? 0 : -1;
}

/* The whole log, which the caller frees. */
static char *read_log(const struct harness *h)
{
    struct stat file;
    assert_int_equal(stat(h->log, &file), 0);
    const size_t size = (size_t)file.st_size + 1;
    char *log = calloc(1, size);
    assert_non_null(log);
    shufd_read(h->log, log, size);
    return log;
}

static void reload(const struct harness *h, const char *text)
{
    char *log = read_log(h);
    const size_t before = strlen(log);
    kill(h->pid, SIGHUP);
    for (int waited = 0; !strstr(log + before, text); waited += 5) {
        if (waited >= HARNESS_WAIT_MS)
            fail_msg("no \"%s\" in the log:\n%s", text, log + before);
        usleep(5000);
        free(log);
        log = read_log(h);
    }
    free(log);
}

/* ---- The values of the specification ---- */

static const char *name_of(const char *digits)
{
    return strcmp(digits, a) == 0 ? "a" : "b";
}

static void check_permutation(shuf *handle, const char *row)
{
    char digits[33], algorithm[16];
    uint64_t n, epoch, fingerprint;
    assert_int_equal(sscanf(row, "permute %32s %15s %" SCNu64 " %" SCNu64 " %" SCNx64, digits,
                            algorithm, &n, &epoch, &fingerprint),
                     5);
    const shuf_request request = {.permutation = {.algorithm = algorithm,
                                                  .n = n,
                                                  .key = name_of(digits),
                                                  .epoch = epoch,
                                                  .dtype = SHUF_U64}};
    uint64_t *values = malloc(n * sizeof *values), at = n / 2, found;
    client_expect(handle, shuf_copy(handle, &request, values, n * sizeof *values, NULL), SHUF_OK,
                  "");
    assert_true(golden_fingerprint(values, n) == fingerprint);
    const shuf_request one = {
        .permutation = {
            .algorithm = algorithm, .n = n, .key = request.permutation.key, .epoch = epoch}};
    client_expect(handle, shuf_index(handle, &one.permutation, SHUF_FORWARD, &at, 1, &found),
                  SHUF_OK, "");
    assert_true(found == values[at]);
    client_expect(handle, shuf_index(handle, &one.permutation, SHUF_INVERSE, &found, 1, &found),
                  SHUF_OK, "");
    assert_true(found == at);
    free(values);
}

static void check_position(shuf *handle, const char *row)
{
    char digits[33];
    uint64_t n, epoch, at, value, found, slice;
    int used;
    assert_int_equal(sscanf(row, "place %32s %" SCNu64 " %" SCNu64 "%n", digits, &n, &epoch, &used),
                     3);
    for (row += used; sscanf(row, " %" SCNu64 " %" SCNu64 "%n", &at, &value, &used) == 2;
         row += used) {
        shuf_request request = {.permutation = {.n = n, .key = name_of(digits), .epoch = epoch}};
        client_expect(handle,
                      shuf_index(handle, &request.permutation, SHUF_FORWARD, &at, 1, &found),
                      SHUF_OK, "");
        assert_true(found == value);
        request.permutation.view = SHUF_VIEW_SLICE;
        request.permutation.offset = at;
        request.permutation.count = request.permutation.stride = 1;
        request.permutation.dtype = SHUF_U64;
        client_expect(handle, shuf_copy(handle, &request, &slice, sizeof slice, NULL), SHUF_OK, "");
        assert_true(slice == value);
    }
}

static shuf_dtype dtype_of(const char *name)
{
    return strcmp(name, "f64") == 0   ? SHUF_F64
           : strcmp(name, "f32") == 0 ? SHUF_F32
           : strcmp(name, "f16") == 0 ? SHUF_F16
           : strcmp(name, "u32") == 0 ? SHUF_U32
           : strcmp(name, "u64") == 0 ? SHUF_U64
                                      : SHUF_BF16;
}

static void check_stream(shuf *handle, const char *row)
{
    char digits[33], law[16], dtype[8], mean[32];
    uint64_t fingerprint;
    shuf_result result;
    shuf_request request = {.kind = SHUF_NUMBERS, .numbers = {0}};
    assert_int_equal(
        sscanf(row, "stream %32s %15s %7s %" SCNu64 " %31s %lf %" SCNu64 " %" SCNu64 " %" SCNx64,
               digits, law, dtype, &request.numbers.stream, mean, &request.numbers.std,
               &request.numbers.offset, &request.numbers.count, &fingerprint),
        9);
    request.numbers.key = name_of(digits);
    request.numbers.distribution = strcmp(law, "uniform") == 0       ? SHUF_UNIFORM
                                   : strcmp(law, "exponential") == 0 ? SHUF_EXPONENTIAL
                                   : strcmp(law, "bernoulli") == 0   ? SHUF_BERNOULLI
                                   : strcmp(law, "integers") == 0    ? SHUF_INTEGERS
                                                                     : SHUF_GAUSS;
    if (request.numbers.distribution == SHUF_INTEGERS)
        request.numbers.bound = strtoull(mean, NULL, 10);
    else
        request.numbers.mean = strtod(mean, NULL);
    request.numbers.method = strcmp(law, "box-muller") == 0 ? SHUF_BOX_MULLER : SHUF_TABLE;
    request.numbers.dtype = dtype_of(dtype);
    client_expect(handle, shuf_summarize(handle, &request, &result), SHUF_OK, "");
    assert_true(result.fingerprint == fingerprint);
}

static void golden_table_matches(void **state)
{
    shuf *handle = client_open_at(*state);
    FILE *table = golden_open("named_keys.txt");
    int rows = 0;
    for (const char *row; (row = golden_line(table)) != NULL; rows++)
        (row[1] == 'e'   ? check_permutation
         : row[1] == 'l' ? check_position
                         : check_stream)(handle, row);
    assert_true(rows > 200);
    fclose(table);
    shuf_close(handle);
}

/* A GPU derives the key of each row of a batch itself. */
static void batch_rows_match_single_rows(void **state)
{
    enum { N = 300, ROWS = 100 };
    static uint32_t all[ROWS][N], one[N];
    shuf *handle = client_open_at(*state);
    for (int i = 0; i < 3; i++) {
        static const char *const names[] = {"primefold", "philox24", "lcg"};
        shuf_request request = {
            .permutation = {
                .algorithm = names[i], .n = i ? N : N - 60, .key = "b", .epochs = ROWS}};
        const size_t row = request.permutation.n * sizeof **all;
        uint8_t *const rows = (uint8_t *)all;
        client_expect(handle, shuf_copy(handle, &request, rows, ROWS * row, NULL), SHUF_OK, "");
        for (request.permutation.epochs = 1; request.permutation.epoch < ROWS;
             request.permutation.epoch += 33) {
            client_expect(handle, shuf_copy(handle, &request, one, row, NULL), SHUF_OK, "");
            assert_memory_equal(rows + request.permutation.epoch * row, one, row);
        }
    }
    shuf_close(handle);
}

static void shuffle_matches_permutation(void **state)
{
    enum { N = 70000 };
    static uint32_t order[N], in[N], out[N];
    shuf *handle = client_open_at(*state);
    const shuf_request permutation = {.permutation = {.n = N, .key = "a", .epoch = 2}};
    const shuf_records records = {.n = N, .record = sizeof *in, .key = "a", .epoch = 2};
    for (uint32_t i = 0; i < N; i++)
        in[i] = 3 * i;
    client_expect(handle, shuf_copy(handle, &permutation, order, sizeof order, NULL), SHUF_OK, "");
    client_expect(handle, shuf_shuffle(handle, &records, in, out, sizeof in, NULL), SHUF_OK, "");
    for (uint32_t i = 0; i < N; i++)
        assert_int_equal(out[i], 3 * order[i]);
    shuf_close(handle);
}

/* ---- The users of a key ---- */

static shuf_status try_key(shuf *handle, const char *name)
{
    uint32_t values[10];
    const shuf_request request = {.permutation = {.n = 10, .key = name}};
    return shuf_copy(handle, &request, values, sizeof values, NULL);
}

/* A user without the right to a key gets one and the same error for existing and missing keys. */
static void expect_denied(shuf *handle, const char *name)
{
    char words[96];
    snprintf(words, sizeof words, "key %s: expected a key of the daemon that user %d may use", name,
             CHILD_NOBODY);
    client_expect(handle, try_key(handle, name), SHUF_DENIED, words);
}

static void become_member(const gid_t *groups, size_t count)
{
    assert_int_equal(setgroups(count, groups), 0);
    assert_int_equal(setresgid(CHILD_NOBODY, CHILD_NOBODY, CHILD_NOBODY), 0);
    assert_int_equal(setresuid(CHILD_NOBODY, CHILD_NOBODY, CHILD_NOBODY), 0);
}

static void use_as_stranger(int channel, void *context)
{
    (void)channel;
    become_member(NULL, 0);
    shuf *handle = client_open_at(context);
    uint64_t at = 1, found;
    const shuf_request one = {.permutation = {.n = 10, .key = "b"}};
    const shuf_request numbers = {
        .kind = SHUF_NUMBERS, .numbers = {.distribution = SHUF_UNIFORM, .key = "b", .count = 1}};
    const shuf_records records = {.n = 1, .record = 8, .key = "b"};
    expect_denied(handle, "a");
    expect_denied(handle, "b");
    expect_denied(handle, "none");
    client_expect(handle, shuf_index(handle, &one.permutation, SHUF_FORWARD, &at, 1, &found),
                  SHUF_DENIED, "key b:");
    client_expect(handle, shuf_copy(handle, &numbers, &found, 8, NULL), SHUF_DENIED, "key b:");
    client_expect(handle, shuf_shuffle(handle, &records, &at, &found, 8, NULL), SHUF_DENIED,
                  "key b:");
    shuf_close(handle);
}

static void use_as_member(int channel, void *context)
{
    (void)channel;
    const gid_t group = GROUP;
    become_member(&group, 1);
    shuf *handle = client_open_at(context);
    expect_denied(handle, "a");
    client_expect(handle, try_key(handle, "b"), SHUF_OK, "");
    expect_denied(handle, "none");
    shuf_close(handle);
}

/* The daemon reads at most 1024 supplementary groups. */
static void use_with_many_groups(void *context, size_t count, bool may_use)
{
    gid_t groups[1025];
    for (size_t i = 0; i < count; i++)
        groups[i] = GROUP + (gid_t)i;
    become_member(groups, count);
    shuf *handle = client_open_at(context);
    if (may_use)
        client_expect(handle, try_key(handle, "b"), SHUF_OK, "");
    else
        expect_denied(handle, "b");
    shuf_close(handle);
}

static void use_with_most_groups(int channel, void *context)
{
    (void)channel;
    use_with_many_groups(context, 1024, true);
}

static void use_with_too_many_groups(int channel, void *context)
{
    (void)channel;
    use_with_many_groups(context, 1025, false);
}

static void run_child(void (*body)(int channel, void *context), struct harness *h)
{
    const struct child child = child_start(body, h);
    child_join(&child);
}

static void group_decides_who_may_use_a_key(void **state)
{
    struct harness *h = *state;
    if (getuid() != 0)
        skip();
    run_child(use_as_stranger, h);
    write_key(h, "b.group", "4711\n");
    reload(h, "2 named keys from ");
    run_child(use_as_stranger, h);
    run_child(use_as_member, h);
    run_child(use_with_most_groups, h);
    run_child(use_with_too_many_groups, h);
    write_key(h, "b.group", "no-such-group\n");
    reload(h, "/b.group: no-such-group: expected the name or number of a group of this machine");
    /* the text is a key, but the name is that of a group file */
    write_key(h, "b.group", "0123456789abcdef0123456789abcdef\n");
    reload(h, "/b.group: expected the name or number of a group of this machine");
    write_key(h, "b.group", "raw key, blanks "); /* 16 bytes that end with a blank */
    reload(h, "/b.group: expected the name or number of a group of this machine");
    remove_key(h, "b.group");
    reload(h, "2 named keys from ");
    run_child(use_as_stranger, h);
}

/* ---- A user namespace that does not map all users ---- */

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* Serves in a namespace whose only user is the overflow uid. */
static void serve_as_overflow(int channel, void *context)
{
    struct harness *h = context;
    if (unshare(CLONE_NEWUSER) != 0) {
        child_send(channel, 0); /* forbidden here, or ThreadSanitizer has a thread of its own */
        return;
    }
    write_file("/proc/self/setgroups", "deny");
    write_file("/proc/self/uid_map", "65534 0 1");
    write_file("/proc/self/gid_map", "65534 0 1");
    assert_true(harness_restart(h));
    child_send(channel, (uint64_t)h->pid);
    child_receive(channel);
    assert_int_equal(harness_kill(h, SIGTERM), 0);
}

/* The daemon sees this user as its own uid. */
static void use_as_unmapped(int channel, void *context)
{
    (void)channel;
    shuf *handle = client_open_at(context);
    shuf_dropped dropped;
    client_expect(handle, try_key(handle, "a"), SHUF_DENIED,
                  "key a: expected a user with a number of its own; 65534 stands for all users");
    client_expect(handle, shuf_drop(handle, SHUF_ALL, 0, &dropped), SHUF_DENIED,
                  "all users: expected root");
    shuf_close(handle);
}

static void overflow_uid_has_no_rights(void **state)
{
    struct harness h;
    (void)state;
    if (getuid() != 0)
        skip();
    prepare_with_keys(&h);
    const struct child daemon = child_start(serve_as_overflow, &h);
    h.pid = (pid_t)child_receive(daemon.channel);
    const bool started = h.pid != 0;
    if (started) {
        const struct child child = child_start_as(GROUP, use_as_unmapped, &h);
        child_join(&child);
        write_key(&h, "b.group", "65534\n");
        reload(&h, "/b.group: group 65534: expected another one; it stands for all groups");
        h.pid = 0; /* the other child ends it */
        child_send(daemon.channel, 0);
    }
    child_join(&daemon);
    void *prepared = &h;
    assert_int_equal(stop(&prepared), 0);
    if (!started)
        skip();
}

/* Checks the keys in a mount namespace whose first group has 2000 members. 75: there is none. */
static int check_beside_large_group(const struct harness *h)
{
    static const char script[] =
        "{ printf many:x:70001: && seq -s , -f member%g 2000 && echo few:x:70002:; } "
        ">\"$0/group\"\n"
        "unshare -m true || exit 75\n"
        "unshare -m sh -c 'mount --bind \"$0/group\" /etc/group && exec \"$1\" --no-config --keys "
        "\"$0/keys\" --backend cpu --socket /tmp/none --check' \"$0\" \"$1\"";
    const char *const argv[] = {"sh", "-c", script, h->directory, SHUFD_PATH, NULL};
    char group[HARNESS_PATH + 8];
    struct command c;
    const int code = command_run(&c, 0, argv);
    if (code != 0 && code != 75)
        fail_msg("exit %d:\n%s", code, c.err.bytes);
    command_free(&c);
    snprintf(group, sizeof group, "%s/group", h->directory);
    unlink(group);
    return code;
}

static void groups_may_have_many_members(void **state)
{
    static const char *const groups[] = {"many\n", "few\n", "1234\n"};
    const struct harness *h = *state;
    if (getuid() != 0)
        skip();
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        write_key(h, "b.group", groups[i]);
        const int code = check_beside_large_group(h);
        remove_key(h, "b.group");
        if (code != 0)
            skip();
    }
}

static void wrong_key_requests_are_refused(void **state)
{
    shuf *handle = client_open_at(*state);
    uint32_t value;
    const shuf_request both = {.permutation = {.n = 1, .seed = 7, .key = "a"}};
    client_expect(handle, shuf_copy(handle, &both, &value, sizeof value, NULL), SHUF_INVALID,
                  "seed 7: expected 0 with key a");
    client_expect(handle, try_key(handle, "../a"), SHUF_INVALID,
                  "key ../a: expected a name of 1 to 31");
    client_expect(handle, try_key(handle, "a.group"), SHUF_INVALID, "without .group");
    client_expect(handle, try_key(handle, "none"), SHUF_DENIED,
                  "key none: expected a key of the daemon");
    client_expect(handle, try_key(handle, ""), SHUF_INVALID,
                  "key \"\": expected the name of a key");
    client_expect(handle, try_key(handle, NULL), SHUF_OK, ""); /* the key of seed 0 */
    shuf_close(handle);
}

/* ---- Reload ---- */

static uint64_t fingerprint_by(shuf *handle, const char *name, bool *shared)
{
    shuf_result result;
    const shuf_request request = {.permutation = {.n = 5000, .key = name}};
    client_expect(handle, shuf_summarize(handle, &request, &result), SHUF_OK, "");
    *shared = result.shared;
    return result.fingerprint;
}

static void reload_adds_and_changes_keys(void **state)
{
    bool shared;
    struct harness *h = *state;
    shuf *handle = client_open_at(h);
    write_key(h, "late", a);
    reload(h, "reload: named keys: 1 new (late)\n");
    const uint64_t first = fingerprint_by(handle, "late", &shared);
    assert_true(fingerprint_by(handle, "late", &shared) == first && shared);
    /* the same bits under another name share no result */
    assert_true(fingerprint_by(handle, "a", &shared) == first && !shared);
    reload(h, "reload: named keys: none changed\n");
    /* The reload has changed nothing, so the result is still in the cache. */
    assert_true(fingerprint_by(handle, "late", &shared) == first && shared);
    write_key(h, "late", other);
    reload(h, "reload: named keys: 1 changed (late)\n");
    const uint64_t second = fingerprint_by(handle, "late", &shared);
    assert_true(second != first && !shared);
    remove_key(h, "late");
    write_key(h, "b.group", "4711\n");
    reload(h, "reload: named keys: 1 changed (b), 1 removed (late)\n");
    remove_key(h, "b.group");
    reload(h, "reload: named keys: 1 changed (b)\n");
    client_expect(handle, try_key(handle, "late"), SHUF_DENIED, "key late:");
    shuf_close(handle);
}

struct replacing {
    struct harness *h;
    bool restarts; /* the daemon; else it reloads */
    unsigned chunks;
};

/* Replaces the key after the first values. */
static bool replace_key(void *context, const void *bytes, size_t size)
{
    struct replacing *r = context;
    (void)bytes;
    (void)size;
    if (r->chunks++ > 0)
        return true;
    write_key(r->h, "late", b);
    if (r->restarts) {
        harness_kill(r->h, SIGKILL);
        assert_true(harness_restart(r->h));
    } else {
        reload(r->h, "1 changed (late)\n");
    }
    return true;
}

static void check_replaced_key(struct harness *h, bool restarts)
{
    struct replacing r = {.h = h, .restarts = restarts};
    const shuf_request request = {
        .permutation = {.n = 20000003, .key = "late", .algorithm = "primefold"}};
    write_key(h, "late", a);
    reload(h, "named keys");
    shuf *handle = client_open_at(h);
    const shuf_status status = shuf_each(handle, &request, replace_key, &r, NULL);
    client_expect(handle, status, SHUF_IO, "key: the daemon has other bits under this name now");
    assert_true(r.chunks > 0);
    shuf_close(handle);
    remove_key(h, "late");
    reload(h, "removed (late)\n");
}

/* The values come in parts, the later ones by another key or from the next daemon. The test
 * has its own daemon, because it starts it again. */
static void replaced_key_ends_running_calls(void **state)
{
    struct harness h;
    void *prepared = &h;
    (void)state;
    prepare_with_keys(&h);
    assert_true(harness_restart(&h));
    check_replaced_key(&h, false);
    check_replaced_key(&h, true);
    assert_int_equal(stop(&prepared), 0);
}

static void failed_reload_keeps_keys(void **state)
{
    static const struct {
        const char *text, *words;
    } wrong[] = {
        {"0001", "/keys/c: expected 32 hex digits, or 16 bytes"},
        {"000102030405060708090a0b0c0d0e0", "expected 32 hex digits"},
        {"000102030405060708090a0b0c0d0e0g", "expected 32 hex digits"},
        {"0123456789abcdef", "expected 32 hex digits"}, /* half a key */
        {"000102030405060700000000000000000", "expected 32 hex digits"},
        {"00010203040506070000000000000000", "with zeros the key has the values of a seed"},
    };
    bool shared;
    struct harness *h = *state;
    shuf *handle = client_open_at(h);
    const uint64_t before = fingerprint_by(handle, "a", &shared);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        write_key(h, "c", wrong[i].text);
        reload(h, wrong[i].words);
        assert_true(fingerprint_by(handle, "a", &shared) == before && shared);
        client_expect(handle, try_key(handle, "c"), SHUF_DENIED, "");
    }
    write_key(h, "c", "\t2345678\n0abcde\n"); /* 16 raw bytes may include white space */
    reload(h, "3 named keys from ");
    client_expect(handle, try_key(handle, "c"), SHUF_OK, "");
    char path[HARNESS_PATH + 64];
    snprintf(path, sizeof path, "%s/keys/c", h->directory);
    assert_int_equal(chmod(path, 0604), 0);
    reload(h,
           "/keys/c: expected no permissions for other users; chmod o= it; no named key changes");
    remove_key(h, "c");
    shuf_close(handle);
}

/* With a mistake in the configuration, the daemon reads no keys either. */
static void wrong_configuration_keeps_keys(void **state)
{
    struct harness *h = *state;
    char conf[HARNESS_PATH + 8], text[4096];
    shuf *handle = client_open_at(h);
    snprintf(conf, sizeof conf, "%s/conf", h->directory);
    shufd_read(conf, text, sizeof text);
    shufd_write(conf, "cleints = 1\n");
    write_key(h, "late", "000102030405060708090a0b0c0d0e0f");
    reload(h, "conf:1: cleints: no such key; did you mean clients?; nothing changes");
    client_expect(handle, try_key(handle, "late"), SHUF_DENIED, "");
    shufd_write(conf, text);
    reload(h, "named keys from ");
    client_expect(handle, try_key(handle, "late"), SHUF_OK, "");
    remove_key(h, "late");
    shuf_close(handle);
}

static void wrong_key_file_stops_start(void **state)
{
    const struct harness *h = *state;
    char conf[HARNESS_PATH + 8], socket[HARNESS_PATH + 8];
    snprintf(conf, sizeof conf, "%s/conf", h->directory);
    snprintf(socket, sizeof socket, "%s/wrong", h->directory);
    const char *const arguments[] = {"--config",  conf,  "--socket", socket,
                                     "--backend", "cpu", NULL};
    write_key(h, "c", "x");
    shufd_expect_exit(arguments, 78, "/keys/c: expected 32 hex digits, or 16 bytes");
    remove_key(h, "c");
}

/* Runs a copy of shufd in the directory of the test, because other users may not reach the build.
 */
static void check_as_other(const struct harness *h, const char *words)
{
    static const char script[] = "cp \"$1\" \"$0/shufd\" && exec setpriv --reuid=65534 "
                                 "--regid=65534 --clear-groups \"$0/shufd\" --no-config --keys "
                                 "\"$0/keys\" --backend cpu --socket /tmp/none --check";
    const char *const argv[] = {"sh", "-c", script, h->directory, SHUFD_PATH, NULL};
    char program[HARNESS_PATH + 8];
    struct command c;
    assert_int_equal(command_run(&c, 0, argv), 78);
    if (!strstr(c.err.bytes, words))
        fail_msg("no \"%s\" in:\n%s", words, c.err.bytes);
    command_free(&c);
    snprintf(program, sizeof program, "%s/shufd", h->directory);
    unlink(program);
}

static void unreadable_files_name_the_user(void **state)
{
    const struct harness *h = *state;
    char keys[HARNESS_PATH + 8];
    if (geteuid() != 0)
        skip();
    snprintf(keys, sizeof keys, "%.*s/keys", HARNESS_PATH, h->directory);
    check_as_other(h, "/keys: Permission denied; expected a directory that uid 65534 may read\n");
    setenv("INVOCATION_ID", "1", 1); /* as in a unit, whose sandbox may hide /tmp */
    check_as_other(h, "may read; the unit may hide it (ProtectHome=, PrivateTmp=): choose another");
    unsetenv("INVOCATION_ID");
    assert_int_equal(chmod(keys, 0755), 0);
    check_as_other(h, ": Permission denied; expected a file that uid 65534 may read, as with chown "
                      "65534; a daemon of another user needs --keys= (no keys)\n");
    assert_int_equal(chmod(keys, 0700), 0);
}

/* The line of an empty `keys =` is not the cause. */
static void wrong_credentials_name_their_variable(void **state)
{
    const struct harness *h = *state;
    char conf[HARNESS_PATH + 16], socket[HARNESS_PATH + 8];
    snprintf(conf, sizeof conf, "%s/empty.conf", h->directory);
    snprintf(socket, sizeof socket, "%s/wrong", h->directory);
    const char *const arguments[] = {"--config",  conf,  "--socket", socket,
                                     "--backend", "cpu", "--check",  NULL};
    shufd_write(conf, "keys =\n");
    assert_int_equal(setenv("CREDENTIALS_DIRECTORY", "/nowhere", 1), 0);
    shufd_expect_exit(arguments, 78,
                      "error: $CREDENTIALS_DIRECTORY: keys /nowhere: No such file or directory");
    unsetenv("CREDENTIALS_DIRECTORY");
    unlink(conf);
}

/* ---- The memory with the bits of keys ---- */

/* Whether the daemon's memory from `start` to `end` has these 16 bytes. */
static bool range_has(int memory, uint64_t start, uint64_t end, const uint8_t *bytes)
{
    bool found = false;
    const size_t size = end - start;
    uint8_t *copy = malloc(size);
    assert_non_null(copy);
    if (pread(memory, copy, size, (off_t)start) == (ssize_t)size)
        found = memmem(copy, size, bytes, 16) != NULL;
    free(copy);
    return found;
}

/* Counts the daemon's mappings that have these bytes. *exposed: one of them may be in a core dump
 * or in swap. In smaps the line of a mapping comes before its flags. */
static int count_mappings(pid_t pid, const uint8_t *bytes, bool *exposed)
{
    char path[64], line[512];
    uint64_t start, end;
    int count = 0;
    bool has = false;
    snprintf(path, sizeof path, "/proc/%d/mem", (int)pid);
    const int memory = open(path, O_RDONLY | O_CLOEXEC);
    snprintf(path, sizeof path, "/proc/%d/smaps", (int)pid);
    FILE *maps = fopen(path, "re");
    assert_true(memory >= 0 && maps);
    *exposed = false;
    while (fgets(line, sizeof line, maps)) {
        char access[5];
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s", &start, &end, access) == 3) {
            has =
                access[1] == 'w' && end - start <= 64 << 20 && range_has(memory, start, end, bytes);
            count += has;
        } else if (has && strncmp(line, "VmFlags:", 8) == 0) {
            /* The sanitizers make mlock() do nothing. */
            *exposed |= !strstr(line, " dd") || (!TEST_SANITIZED && !strstr(line, " lo"));
        }
    }
    fclose(maps);
    close(memory);
    return count;
}

static void parse_key(const char *digits, uint8_t bytes[16])
{
    for (int i = 0; i < 16; i++)
        assert_int_equal(sscanf(digits + 2 * i, "%2hhx", &bytes[i]), 1);
}

static void use_by_every_request(shuf *handle, const char *key)
{
    static uint32_t values[400000];
    uint64_t at = 5;
    for (int i = 0; i < 3; i++) {
        static const char *const names[] = {"primefold", "philox24", "lcg"};
        const shuf_request request = {
            .permutation = {.algorithm = names[i], .n = 400000, .key = key}};
        client_expect(handle, shuf_copy(handle, &request, values, sizeof values, NULL), SHUF_OK,
                      "");
        client_expect(handle, shuf_index(handle, &request.permutation, SHUF_FORWARD, &at, 1, &at),
                      SHUF_OK, "");
    }
    const shuf_request numbers = {
        .kind = SHUF_NUMBERS, .numbers = {.distribution = SHUF_UNIFORM, .key = key, .count = 1000}};
    client_expect(handle, shuf_copy(handle, &numbers, values, sizeof values, NULL), SHUF_OK, "");
}

/* The daemon has a key only in one locked mapping, and wipes it when the key is removed. On a GPU,
 * the driver's command buffers also have the arguments of recent launches. */
static void key_bits_stay_in_locked_mapping(void **state)
{
    struct harness *h = *state;
    uint8_t bytes[16];
    const bool gpu = harness_is_cuda();
    bool exposed;
    struct stat process;
    char path[64];
    if (getuid() != 0)
        skip();
    write_key(h, "late", other);
    reload(h, "3 named keys from ");
    shuf *handle = client_open_at(h);
    use_by_every_request(handle, "late");
    parse_key(other, bytes);
    const int mappings = count_mappings(h->pid, bytes, &exposed);
    assert_true(gpu ? mappings >= 1 : mappings == 1 && !exposed);
    snprintf(path, sizeof path, "/proc/%d/environ", (int)h->pid);
    assert_int_equal(stat(path, &process), 0);
    /* root owns the /proc files of a process that makes no core dumps */
    assert_int_equal(process.st_uid, 0);
    remove_key(h, "late");
    reload(h, "2 named keys from ");
    assert_true(gpu || count_mappings(h->pid, bytes, &exposed) == 0);
    char *log = read_log(h);
    /* The log has the name of the key. */
    assert_non_null(strstr(log, "primefold, key late, epoch 0"));
    assert_null(strstr(log, other));
    free(log);
    shuf_close(handle);
}

/* ---- shufctl ---- */

static char *run_shufctl(const struct harness *h, int status, const char *const *words)
{
    const char *argv[16] = {SHUFCTL_PATH};
    int count = 1;
    while (*words)
        argv[count++] = *words++;
    argv[count++] = "--socket";
    argv[count++] = h->socket;
    struct command command;
    if (command_run(&command, 0, argv) != status)
        fail_msg("shufctl ended with %d: %s%s", command.status, command.out.bytes,
                 command.err.bytes);
    char *text = strdup(status ? command.err.bytes : command.out.bytes);
    command_free(&command);
    return text;
}

static void expect_shufctl(const struct harness *h, int status, const char *words,
                           const char *const *arguments)
{
    char *text = run_shufctl(h, status, arguments);
    if (!strstr(text, words))
        fail_msg("no \"%s\" in:\n%s", words, text);
    free(text);
}

#define SHUFCTL(h, status, words, ...) \
    expect_shufctl(h, status, words, (const char *const[]){__VA_ARGS__, NULL})

static void shufctl_uses_keys(void **state)
{
    const struct harness *h = *state;
    SHUFCTL(h, 0, "key         a\n", "permute", "--n", "40", "--key", "a");
    SHUFCTL(h, 0, "\"key\": \"a\"", "permute", "--n", "40", "--key", "a", "--json");
    SHUFCTL(h, 0, "key         a\n", "gauss", "--count", "40", "--key", "a");
    SHUFCTL(h, 0, "key         a\n", "uniform", "--count", "40", "--key", "a");
    SHUFCTL(h, 0, "\"key\": \"b\"", "index", "--n", "40", "--key", "b", "--at", "3", "--json");
    SHUFCTL(h, 64, "--key", "permute", "--n", "40", "--key", "a", "--seed", "7");
    SHUFCTL(h, 64, "--key ../a: expected the name of a key", "permute", "--n", "40", "--key",
            "../a");
    SHUFCTL(h, 77, "key none: expected a key of the daemon", "permute", "--n", "4", "--key",
            "none");
}

int main(int argc, char **argv)
{
    harness_backend = harness_backend_or_skip(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_table_matches),
        cmocka_unit_test(batch_rows_match_single_rows),
        cmocka_unit_test(shuffle_matches_permutation),
        cmocka_unit_test(group_decides_who_may_use_a_key),
        cmocka_unit_test(overflow_uid_has_no_rights),
        cmocka_unit_test(groups_may_have_many_members),
        cmocka_unit_test(wrong_key_requests_are_refused),
        cmocka_unit_test(reload_adds_and_changes_keys),
        cmocka_unit_test(replaced_key_ends_running_calls),
        cmocka_unit_test(failed_reload_keeps_keys),
        cmocka_unit_test(wrong_configuration_keeps_keys),
        cmocka_unit_test(wrong_key_file_stops_start),
        cmocka_unit_test(unreadable_files_name_the_user),
        cmocka_unit_test(wrong_credentials_name_their_variable),
        cmocka_unit_test(key_bits_stay_in_locked_mapping),
        cmocka_unit_test(shufctl_uses_keys),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
