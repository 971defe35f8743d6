/* SPDX-License-Identifier: MIT
 *
 * shufctl drop and shuf_drop(): unused results are freed, and the daemon reports them.
 */
#include "shuf.h"
#include "support/cmocka_all.h"
#include "support/json.h"
#include "support/shufctl.h"

#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

static void wrong_options_are_explained(void **state)
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
        cmocka_unit_test(drop_frees_results_of_named_user),
        cmocka_unit_test(drop_as_text),
        cmocka_unit_test(prefetch_above_cache_is_refused),
        cmocka_unit_test(wrong_options_are_explained),
        cmocka_unit_test(drop_keeps_leased_result),
        cmocka_unit_test(drop_of_other_users_is_refused),
        cmocka_unit_test(drop_reports_leases_in_use),
        cmocka_unit_test(status_names_process_with_mapping),
    };
    return cmocka_run_group_tests(tests, shufctl_set_up, shufctl_tear_down);
}
