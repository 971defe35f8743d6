/* SPDX-License-Identifier: MIT
 *
 * Leases of shufctl and of the example of a training loop, with each transport of the backend of
 * the command line; shufctl drop and shuf_drop() free unused results, and the daemon reports them.
 */
#include "shuf.h"
#include "support/cmocka_all.h"
#include "support/expected.h"
#include "support/shufctl.h"

#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const transports[] = {"inline", "memfd", "cuda-fd", "cuda-ipc"};

/* The number of transports of the backend. */
static int transport_count(void)
{
    return strcmp(shufctl_backend, "cuda") == 0 ? 4 : 2;
}

/* The result is larger than one read of shufctl, and not a multiple of it. */
static void values_match_by_each_transport(void **state)
{
    (void)state;
    shuf_request request = {
        .permutation = {.n = 300007, .seed = 7, .epoch = 3, .epochs = 2, .dtype = SHUF_U64}};
    uint64_t count, *values = expected_values(&request, &count);
    for (int i = 0; i < transport_count(); i++) {
        size_t size;
        char *bytes = shufctl_succeed(&size,
                                      "permute --n 300007 --seed 7 --epochs 3:5 --dtype u64 "
                                      "--out - --format raw --transport %s",
                                      transports[i]);
        assert_int_equal(size, count * sizeof *values);
        assert_memory_equal(bytes, values, size);
        free(bytes);
    }
    free(values);
}

static void files_match_by_each_transport(void **state)
{
    (void)state;
    const char *plain = shufctl_path("plain.npy"), *leased = shufctl_path("leased.npy");
    free(shufctl_succeed(NULL, "permute --n 100003 --seed 7 --out %s", plain));
    size_t size, other;
    char *expected = shufctl_read(plain, &size);
    for (int i = 0; i < transport_count(); i++) {
        free(shufctl_succeed(NULL, "permute --n 100003 --seed 7 --out %s --transport %s", leased,
                             transports[i]));
        char *bytes = shufctl_read(leased, &other);
        assert_int_equal(other, size);
        assert_memory_equal(bytes, expected, size);
        free(bytes);
    }
    free(expected);
    shufctl_remove("plain.npy");
    shufctl_remove("leased.npy");
}

/* A summary has the same fields with a lease as without one, and also the fields of the lease. */
static void summaries_match_by_each_transport(void **state)
{
    (void)state;
    const char *request = "permute --n 50021 --seed 77 --rank 1 --world 3 --json";
    json_t *plain = json_parse(shufctl_succeed(NULL, "%s", request));
    for (int i = 0; i < transport_count(); i++) {
        bool copy = i == 0, device = i >= 2;
        json_t *o = json_parse(shufctl_succeed(NULL, "%s --transport %s", request, transports[i]));
        assert_string_equal(json_member_text(o, "transport"), transports[i]);
        assert_int_equal(json_member_hex(o, "fingerprint"), json_member_hex(plain, "fingerprint"));
        assert_true(json_equal(json_member(o, "first"), json_member(plain, "first")));
        assert_true(json_equal(json_member(o, "last"), json_member(plain, "last")));
        assert_int_equal(json_member_integer(o, "block") == 0, copy);
        if (device)
            assert_int_equal(json_member_integer(o, "block_bytes"), 2 << 20);
        else /* the bytes of 16674 values */
            assert_in_range(json_member_integer(o, "block_bytes"), copy ? 0 : 66696,
                            copy ? 0 : 66696 + 65536);
        assert_int_equal(strncmp(json_member_text(o, "device_id"), "GPU-", 4) == 0, device);
        assert_true(json_is_boolean(json_member(o, "cached")));
        json_decref(o);
    }
    json_decref(plain);
}

static void summary_as_text(void **state)
{
    (void)state;
    static const char *const cached[] = {"\ncached      no\n", "\ncached      yes\n"};
    for (int i = 0; i < 2; i++) {
        char *text = shufctl_succeed(NULL, "permute --n 77 --seed 78 --transport memfd");
        assert_non_null(strstr(text, "\ntransport   memfd\nblock       "));
        assert_non_null(strstr(text, sysconf(_SC_PAGESIZE) == 4096 ? " (4 KiB)\n" : "KiB)\n"));
        assert_non_null(strstr(text, cached[i]));
        assert_int_equal(strstr(text, " (earlier), ") != NULL, i);
        assert_non_null(strstr(text, "\nfingerprint 0x"));
        free(text);
    }
}

static void empty_shard_by_each_transport(void **state)
{
    (void)state;
    for (int i = 0; i < transport_count(); i++) {
        size_t size;
        free(shufctl_succeed(&size,
                             "permute --n 1 --seed 7 --rank 0 --world 2 --drop-last --out - "
                             "--format raw --transport %s",
                             transports[i]));
        assert_int_equal(size, 0);
    }
}

static void missing_transport_is_refused(void **state)
{
    (void)state;
    struct command c;
    for (int i = transport_count(); i < 4; i++) {
        assert_int_equal(
            shufctl_run(&c, 0, "permute --n 10 --seed 7 --transport %s", transports[i]), 64);
        assert_non_null(strstr(c.err.bytes, transports[i]));
        assert_non_null(strstr(c.err.bytes, "memfd"));
        command_free(&c);
    }
}

static uint64_t status_member(const char *key)
{
    json_t *o = json_parse(shufctl_succeed(NULL, "status --json"));
    uint64_t value = json_member_integer(o, key);
    json_decref(o);
    return value;
}

/* A prefetch and a lease of the same result share one computation, in memory of the right kind. */
static void prefetched_result_is_leased(void **state)
{
    (void)state;
    for (int i = 1; i < transport_count(); i++) {
        uint64_t before = status_member("computed");
        char *text = shufctl_succeed(NULL, "permute --n 1001 --seed %d --prefetch --transport %s",
                                     1000 + i, transports[i]);
        assert_memory_equal(text, "ready in shufd: primefold, n 1001, seed ", 40);
        assert_non_null(strstr(text, ", epoch 0: 4.00 kB, computed in "));
        free(text);
        assert_int_equal(status_member("computed"), before + 1);
        json_t *o = json_parse(shufctl_succeed(
            NULL, "permute --n 1001 --seed %d --transport %s --json", 1000 + i, transports[i]));
        assert_true(json_is_true(json_member(o, "cached")));
        json_decref(o);
        assert_int_equal(status_member("computed"), before + 1);
    }
    uint64_t before = status_member("computed");
    json_t *o = json_parse(
        shufctl_succeed(NULL, "permute --n 1001 --seed 9 --epochs 3:5 --prefetch --json"));
    assert_true(json_is_true(json_member(o, "ready")));
    assert_int_equal(json_member_integer(o, "bytes"), 2 * 1001 * 4);
    json_decref(o);
    free(shufctl_succeed(NULL, "permute --n 1001 --seed 9 --epochs 3:5"));
    assert_int_equal(status_member("computed"), before + 1);
}

static const json_t *only_lease(json_t *object)
{
    const json_t *list = json_member(object, "leases");
    assert_int_equal(json_array_size(list), 1);
    return json_array_get(list, 0);
}

static void leases_are_listed(void **state)
{
    (void)state;
    shuf_request request = {
        .permutation = {.n = 1 << 18, .seed = UINT64_MAX, .epoch = 5, .epochs = 2}};
    char expected[64];
    shuf_lease *lease = NULL;
    shuf *handle;
    assert_int_equal(shuf_connect(&handle, NULL), SHUF_OK);
    assert_int_equal(shuf_lease_take(handle, &request, NULL, &lease), SHUF_OK);
    json_t *o = json_parse(shufctl_succeed(NULL, "leases --json"));
    const json_t *e = only_lease(o);
    assert_int_equal(json_member_integer(e, "id"), lease->id);
    assert_int_equal(json_member_integer(e, "pid"), getpid());
    assert_int_equal(json_member_integer(e, "uid"), geteuid());
    assert_int_equal(json_member_integer(e, "block"), lease->block);
    assert_int_equal(json_member_integer(e, "block_bytes"), lease->block_bytes);
    assert_string_equal(json_member_text(e, "transport"), "memfd");
    assert_string_equal(json_member_text(e, "algorithm"), "primefold");
    assert_string_equal(json_member_text(e, "seed"), "18446744073709551615");
    assert_string_equal(json_member_text(e, "epoch"), "5");
    assert_int_equal(json_member_integer(e, "rows"), 2);
    assert_int_equal(json_member_integer(e, "count"), 1 << 18);
    assert_true(json_is_true(json_member(e, "ready")));
    assert_true(json_is_false(json_member(e, "prefetch")));
    json_decref(o);
    char *text = shufctl_succeed(NULL, "leases");
    snprintf(expected, sizeof expected, "\n%-16" PRIu64 " %-8d ", lease->id, (int)getpid());
    assert_memory_equal(text, "ID               PID      USER ", 31);
    assert_non_null(strstr(text, expected));
    snprintf(expected, sizeof expected, " memfd     %-16" PRIu64 " 2 MiB    ", lease->block);
    assert_non_null(strstr(text, expected));
    assert_non_null(strstr(text, "\n1 lease of 1 block, 2 MiB\n"));
    assert_non_null(strstr(text, " leased     primefold, n 262144, seed 18446744073709551615, "
                                 "2 epochs from 5\n"));
    free(text);
    assert_int_equal(status_member("leases"), 1);
    assert_int_equal(shuf_lease_release(handle, &lease), SHUF_OK);
    o = json_parse(shufctl_succeed(NULL, "leases --json"));
    assert_int_equal(json_array_size(json_member(o, "leases")), 0);
    json_decref(o);
    shuf_close(handle);
}

/* The list of leases shows streams as streams. */
static void leases_of_streams_are_listed(void **state)
{
    (void)state;
    const shuf_request numbers = {.kind = SHUF_NUMBERS,
                                  .numbers = {.distribution = SHUF_GAUSS,
                                              .seed = UINT64_MAX,
                                              .stream = 5,
                                              .offset = 77,
                                              .count = 1001,
                                              .mean = -0.5,
                                              .std = 2,
                                              .dtype = SHUF_BF16}};
    const shuf_request other = {
        .kind = SHUF_NUMBERS,
        .numbers = {.distribution = SHUF_UNIFORM, .count = 1, .dtype = SHUF_U32}};
    shuf_lease *lease = NULL;
    shuf *handle;
    assert_int_equal(shuf_connect(&handle, NULL), SHUF_OK);
    assert_int_equal(shuf_lease_take(handle, &numbers, NULL, &lease), SHUF_OK);
    json_t *o = json_parse(shufctl_succeed(NULL, "leases --json"));
    const json_t *e = only_lease(o);
    assert_null(json_object_get(e, "algorithm"));
    assert_string_equal(json_member_text(e, "distribution"), "gauss");
    assert_string_equal(json_member_text(e, "dtype"), "bf16");
    assert_string_equal(json_member_text(e, "seed"), "18446744073709551615");
    assert_string_equal(json_member_text(e, "stream"), "5");
    assert_int_equal(json_member_integer(e, "offset"), 77);
    assert_int_equal(json_member_integer(e, "count"), 1001);
    assert_true(json_real_value(json_member(e, "mean")) == -0.5);
    assert_true(json_real_value(json_member(e, "std")) == 2);
    json_decref(o);
    char *text = shufctl_succeed(NULL, "leases");
    assert_non_null(strstr(text, " leased     gauss bf16, seed 18446744073709551615, stream 5, "
                                 "1001 values from 77, mean -0.5, std 2\n"));
    free(text);
    assert_int_equal(shuf_lease_take(handle, &other, NULL, &lease), SHUF_OK);
    text = shufctl_succeed(NULL, "leases");
    assert_non_null(strstr(text, " leased     uniform u32, seed 0, stream 0, 1 value from 0\n"));
    free(text);
    const shuf_request single = {
        .permutation = {.n = 10, .seed = 7, .view = SHUF_VIEW_SLICE, .count = 1}};
    assert_int_equal(shuf_lease_take(handle, &single, NULL, &lease), SHUF_OK);
    text = shufctl_succeed(NULL, "leases");
    assert_non_null(strstr(text, ", n 10, seed 7, epoch 0, 1 value\n"));
    free(text);
    shuf_close(handle);
}

/* Leases of one result share a block. The total counts its bytes once. */
static void leases_of_one_block_are_counted_once(void **state)
{
    (void)state;
    enum { HANDLES = 3 };
    shuf *handles[HANDLES];
    for (uint64_t i = 0; i < HANDLES; i++) {
        shuf_lease *lease = NULL;
        shuf_request request = {.permutation = {.n = 1 << 19, .seed = 78, .epoch = i / 2}};
        assert_int_equal(shuf_connect(&handles[i], shufctl_daemon.socket), SHUF_OK);
        assert_int_equal(shuf_lease_take(handles[i], &request, NULL, &lease), SHUF_OK);
    }
    char *text = shufctl_succeed(NULL, "leases");
    assert_non_null(strstr(text, "\n3 leases of 2 blocks, 4 MiB\n"));
    free(text);
    for (int i = 0; i < HANDLES; i++)
        shuf_close(handles[i]);
}

static void status_counts_shared_results(void **state)
{
    (void)state;
    static const char *const keys[] = {"blocks",    "host_idle",   "device_idle", "pending_free",
                                       "leases",    "hits",        "joined",      "computed",
                                       "evicted",   "log_dropped", "memory_used", "memory_limit",
                                       "host_used", "host_limit",  "other_users"};
    static const char *const lines[] = {"\nresults     ", "\nleases      0\n", "\nblocks      ",
                                        "\nuser        ", "\nidle        "};
    free(shufctl_succeed(NULL, "permute --n 10 --seed 7"));
    json_t *o = json_parse(shufctl_succeed(NULL, "status --json"));
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        json_member_integer(o, keys[i]);
    assert_true(json_is_boolean(json_member(o, "copies_host")));
    assert_string_equal(json_string_value(json_member(o, "configuration")), "");
    assert_true(json_member_integer(o, "blocks") > 0);
    const json_t *user = json_array_get(json_member(o, "users"), 0);
    assert_int_equal(json_member_integer(user, "uid"), geteuid());
    assert_int_equal(json_member_integer(user, "clients"), 1);
    assert_int_equal(json_member_integer(user, "blocks"), json_member_integer(o, "blocks"));
    json_member(user, "user");
    json_decref(o);
    char *text = shufctl_succeed(NULL, "status");
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        assert_non_null(strstr(text, lines[i]));
    free(text);
}

/* Processes share memory. Together they read each sample once, and the daemon computes each epoch
 * once. */
static void processes_share_each_epoch(void **state)
{
    (void)state;
    for (int i = 0; i < transport_count(); i++) {
        char seed[16];
        const char *const argv[] = {TRAIN_PATH, "--processes", "8",           "--epochs",
                                    "3",        "--n",         "600011",      "--seed",
                                    seed,       "--transport", transports[i], NULL};
        struct command c;
        snprintf(seed, sizeof seed, "%d", 4000 + i);
        int status = command_run(&c, 0, argv);
        if (status != 0)
            fprintf(stderr, "%s%s", c.out.bytes, c.err.bytes);
        assert_int_equal(status, 0);
        assert_non_null(strstr(c.out.bytes, "\nepoch 2: "));
        assert_non_null(strstr(c.out.bytes, i == 0 ? " 0 blocks, " : " 1 blocks, "));
        assert_non_null(strstr(c.out.bytes, " 600011 of 600011 samples seen, 0 again\n"));
        assert_non_null(
            strstr(c.out.bytes, "\n3 epochs of 8 processes: shufd computed 3 results\n"));
        command_free(&c);
    }
}

/* ---- shufctl drop ---- */

/* Computes two results of different sizes, in blocks of 2 and 4 MiB. */
static void compute_two(void)
{
    free(shufctl_succeed(NULL, "permute --n 100000 --seed 7"));
    free(shufctl_succeed(NULL, "permute --n 500000 --seed 7"));
}

static uint64_t idle_bytes(void)
{
    json_t *o = json_parse(shufctl_succeed(NULL, "status --json"));
    const uint64_t bytes = (uint64_t)json_member_integer(o, "host_idle") +
                           (uint64_t)json_member_integer(o, "device_idle");
    json_decref(o);
    return bytes;
}

static uint64_t drop(const char *options, uint64_t *results)
{
    json_t *o = json_parse(shufctl_succeed(NULL, "drop --json%s", options));
    *results = (uint64_t)json_member_integer(o, "results");
    const uint64_t bytes = (uint64_t)json_member_integer(o, "host_bytes") +
                           (uint64_t)json_member_integer(o, "device_bytes");
    assert_int_equal(json_member_integer(o, "mapped_bytes"), 0);
    json_decref(o);
    return bytes;
}

/* Each option drops all idle results and reports their number and bytes. The status gives the same
 * figures. */
static void drop_frees_results_of_named_user(void **state)
{
    (void)state;
    char by_number[32], by_name[64];
    const char *const options[] = {"", " --all", by_number, by_name};
    const struct passwd *user = getpwuid(geteuid());
    assert_non_null(user);
    snprintf(by_name, sizeof by_name, " --user %s", user->pw_name);
    snprintf(by_number, sizeof by_number, " --user %u", (unsigned)geteuid());
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        uint64_t results;
        compute_two();
        const uint64_t idle = idle_bytes();
        assert_true(idle >= 2400000);
        assert_int_equal(drop(options[i], &results), idle);
        assert_int_equal(results, 2);
        assert_int_equal(idle_bytes(), 0);
        assert_int_equal(drop(options[i], &results), 0);
        assert_int_equal(results, 0);
    }
}

static void drop_as_text(void **state)
{
    (void)state;
    compute_two();
    char *text = shufctl_succeed(NULL, "status");
    assert_non_null(strstr(text, "\nidle        "));
    assert_non_null(strstr(text, " of 1 GiB\n"));
    free(text);
    text = shufctl_succeed(NULL, "drop");
    assert_int_equal(strncmp(text, "freed       2 results, ", strlen("freed       2 results, ")),
                     0);
    assert_non_null(strstr(text, " of host memory, "));
    free(text);
}

static void wrong_drops_are_explained(void **state)
{
    (void)state;
    shufctl_fail(64, "--user no-such-user: no such user, expected a name or a number",
                 "drop --user no-such-user");
    shufctl_fail(64, "--user and --all: expected one of them", "drop --user 0 --all");
    shufctl_fail(64, "--user: expected a name or a number before -1", "drop --user -1");
    shufctl_fail(64, "--user: expected a name or a number before --all", "drop --user --all");
    shufctl_fail(64, "--user 4294967295: no such user", "drop --user 4294967295"); /* (uid_t)-1 */
    shufctl_fail(64, "unrecognized option '--usr'; did you mean --user?", "drop --usr 0");
}

/* A prefetch of a result larger than host_cache fails, because the daemon would not keep the
 * result. */
static void prefetch_above_cache_is_refused(void **state)
{
    (void)state;
    shufctl_fail(
        71,
        strcmp(shufctl_backend, "cpu") == 0
            ? "--prefetch: the result has 1.12 GiB, but the daemon keeps at most 1 GiB: it "
              "has read no configuration: start it with a larger --host-cache"
            : "--prefetch: the result has 1.12 GiB, but the daemon keeps at most 1 GiB: it "
              "has read no configuration: start it with a larger --device-cache",
        "permute --n 3e8 --seed 7 --prefetch");
    shufctl_fail(71,
                 strcmp(shufctl_backend, "cpu") == 0
                     ? "start it with a larger --host-cache and --host-memory"
                     : "start it with a larger --device-cache and --device-memory",
                 "permute --n 1e18 --seed 7 --prefetch");
}

/* The result of a lease is not dropped. */
static void drop_keeps_leased_result(void **state)
{
    (void)state;
    shuf *handle;
    shuf_lease *lease = NULL;
    shuf_dropped dropped;
    const shuf_request request = {.permutation = {.n = 100000, .seed = 8}};
    compute_two();
    assert_int_equal(shuf_connect(&handle, shufctl_daemon.socket), SHUF_OK);
    assert_int_equal(shuf_lease_take(handle, &request, NULL, &lease), SHUF_OK);
    assert_int_equal(shuf_drop(handle, SHUF_OWN, 0, &dropped), SHUF_OK);
    assert_int_equal(dropped.results, 2);
    assert_int_equal(shuf_drop(handle, SHUF_USER, geteuid(), &dropped), SHUF_OK);
    assert_int_equal(dropped.results, 0);
    assert_int_equal(shuf_drop(handle, SHUF_ALL, 0, NULL), SHUF_OK);
    assert_int_equal(((const uint32_t *)lease->data)[0] < 100000, 1);
    assert_int_equal(shuf_lease_release(handle, &lease), SHUF_OK);
    assert_int_equal(shuf_drop(handle, (shuf_owner)7, 0, NULL), SHUF_INVALID);
    assert_non_null(strstr(shuf_message(handle), "owner 7: expected SHUF_OWN"));
    shuf_close(handle);
}

static void expect_mapped(const char *text, long pid)
{
    char *status = shufctl_succeed(NULL, "status");
    assert_non_null(strstr(status, text));
    free(status);
    json_t *o = json_parse(shufctl_succeed(NULL, "status --json"));
    json_t *user = json_array_get(json_object_get(o, "users"), 0);
    assert_int_equal(json_member_integer(user, "mapped_bytes"), 2 << 20);
    assert_int_equal(json_integer_value(json_object_get(user, "mapped_pid")), pid);
    assert_int_equal(json_is_null(json_object_get(user, "mapped_pid")), pid == 0);
    json_decref(o);
}

static void drop_reports_leases_in_use(void **state)
{
    (void)state;
    shuf *handle;
    shuf_lease *lease = NULL;
    const shuf_request request = {.permutation = {.n = 1000, .seed = 10}};
    assert_int_equal(shuf_connect(&handle, shufctl_daemon.socket), SHUF_OK);
    assert_int_equal(shuf_drop(handle, SHUF_ALL, 0, NULL), SHUF_OK);
    assert_int_equal(shuf_lease_take(handle, &request, NULL, &lease), SHUF_OK);
    char *dropped = shufctl_succeed(NULL, "drop --all");
    assert_string_equal(dropped, "freed       0 results, 0 B of host memory, 0 B of device memory\n"
                                 "in use      1 lease: shufctl leases names the processes\n");
    free(dropped);
    assert_int_equal(shuf_lease_release(handle, &lease), SHUF_OK);
    shuf_close(handle);
}

/* Some memory is mapped without a lease. The status tells the user which of the user's processes
 * has it mapped. */
static void status_names_process_with_mapping(void **state)
{
    (void)state;
    char text[160];
    shuf *handle;
    shuf_lease *lease = NULL;
    const shuf_request request = {.permutation = {.n = 1 << 19, .seed = 9}};
    assert_int_equal(shuf_connect(&handle, shufctl_daemon.socket), SHUF_OK);
    assert_int_equal(shuf_lease_take(handle, &request, NULL, &lease), SHUF_OK);
    assert_int_equal(shuf_lease_release(handle, &lease), SHUF_OK);
    snprintf(text, sizeof text,
             "2 MiB of it mapped without a lease, most by process %d: free after its next call or "
             "its end\n",
             (int)getpid());
    expect_mapped(text, (long)getpid());
    char *dropped = shufctl_succeed(NULL, "drop");
    assert_null(strstr(dropped, "in use"));
    assert_non_null(strstr(dropped, "\nlater       2 MiB, when no process has them mapped (see "
                                    "shufctl status)\n"));
    free(dropped);
    shuf_close(handle);
}

static void drop_of_other_users_is_refused(void **state)
{
    (void)state;
    struct command c;
    if (geteuid() != 0)
        skip();
    compute_two();
    assert_int_equal(chmod(shufctl_daemon.directory, 0755), 0);
    assert_int_equal(chmod(shufctl_daemon.socket, 0666), 0);
    assert_int_equal(shufctl_run(&c, COMMAND_AS_NOBODY, "drop --all"), 77);
    assert_non_null(strstr(c.err.bytes, "all users: expected root or the daemon's user, not uid"));
    command_free(&c);
    assert_true(idle_bytes() > 0);
}

int main(int argc, char **argv)
{
    shufctl_backend = harness_backend_or_skip(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_match_by_each_transport),
        cmocka_unit_test(files_match_by_each_transport),
        cmocka_unit_test(summaries_match_by_each_transport),
        cmocka_unit_test(summary_as_text),
        cmocka_unit_test(empty_shard_by_each_transport),
        cmocka_unit_test(missing_transport_is_refused),
        cmocka_unit_test(prefetched_result_is_leased),
        cmocka_unit_test(leases_are_listed),
        cmocka_unit_test(leases_of_streams_are_listed),
        cmocka_unit_test(leases_of_one_block_are_counted_once),
        cmocka_unit_test(status_counts_shared_results),
        cmocka_unit_test(processes_share_each_epoch),
    };
    const struct CMUnitTest drop_tests[] = {
        /* a new daemon, which has no other results */
        cmocka_unit_test(drop_frees_results_of_named_user),
        cmocka_unit_test(drop_as_text),
        cmocka_unit_test(prefetch_above_cache_is_refused),
        cmocka_unit_test(wrong_drops_are_explained),
        cmocka_unit_test(drop_keeps_leased_result),
        cmocka_unit_test(drop_of_other_users_is_refused),
        cmocka_unit_test(drop_reports_leases_in_use),
        cmocka_unit_test(status_names_process_with_mapping),
    };
    return cmocka_run_group_tests(tests, shufctl_set_up, shufctl_tear_down) +
           cmocka_run_group_tests(drop_tests, shufctl_set_up, shufctl_tear_down);
}
