/* SPDX-License-Identifier: MIT
 *
 * The metrics of a real daemon: the test sends requests and compares each count with them.
 */
#include "support/child.h"
#include "support/client.h"
#include "support/shufctl.h"
#include "support/wire.h"

#include "support/cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct harness *const h = &shufctl_daemon;

struct change {
    const char *sample;
    double difference;
};

/* Expects these differences between two texts of metrics, and frees the texts. */
static void expect_changes(char *before, char *after, const struct change *changes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const double difference =
            metrics_value(after, changes[i].sample) - metrics_value(before, changes[i].sample);
        if (difference != changes[i].difference)
            print_message("%s: changed by %g\n", changes[i].sample, difference);
        assert_true(difference == changes[i].difference);
    }
    free(before);
    free(after);
}

#define EXPECT_CHANGES(before, after, changes) \
    expect_changes(before, after, changes, sizeof(changes) / sizeof *(changes))

/* Sends one request of each kind, so that the metrics have rows for all kinds. */
static void send_each_kind(void)
{
    free(shufctl_succeed(NULL, "permute --n 100 --seed 1"));
    free(shufctl_succeed(NULL, "gauss --count 10 --seed 1 --summary"));
    free(shufctl_succeed(NULL, "index --n 100 --seed 1 --at 5"));
    free(shufctl_succeed(NULL, "drop"));
}

/* ---- Counts ---- */

static void requests_are_counted(void **state)
{
    (void)state;
    const bool on_host = strcmp(harness_backend, "cpu") == 0;
    const struct change changes[] = {
        {"shufd_requests_total{kind=\"permute\",status=\"OK\"}", 3},
        {"shufd_requests_total{kind=\"stream\",status=\"OK\"}", 1},
        {"shufd_requests_total{kind=\"index\",status=\"OK\"}", 1},
        {"shufd_requests_total{kind=\"drop\",status=\"OK\"}", 1},
        {"shufd_requests_total{kind=\"metrics\",status=\"OK\"}", 1},
        {"shufd_requests_total{kind=\"hello\",status=\"OK\"}", 7},
        {"shufd_request_duration_seconds_count{kind=\"permute\"}", 3},
        {"shufd_request_duration_seconds_bucket{kind=\"permute\",le=\"+Inf\"}", 3},
        {"shufd_stage_duration_seconds_count{stage=\"reply\"}", 14},
        {"shufd_stage_duration_seconds_count{stage=\"device\"}", 3},
        {"shufd_stage_duration_seconds_count{stage=\"queue\"}", 3},
        {"shufd_values_total{kind=\"permute\"}", 1000 + 1000 + 2 * 50},
        {"shufd_values_total{kind=\"stream\"}", 30},
        {"shufd_values_total{kind=\"index\"}", 3},
        {"shufd_results_total", 4},
        {"shufd_cache_hits_total", 1},
        {"shufd_cache_computations_total{place=\"host\"}", on_host ? 3 : 0},
        {"shufd_cache_computations_total{place=\"device\"}", on_host ? 0 : 3},
        {"shufd_connections_total", 7},
        {"shufd_slow_requests_total", 0},
    };
    send_each_kind();
    char *before = metrics_read(h);
    free(shufctl_succeed(NULL, "permute --n 1000 --seed 7"));
    free(shufctl_succeed(NULL, "permute --n 1000 --seed 7"));
    free(shufctl_succeed(NULL, "permute --n 50 --seed 7 --epochs 0:2"));
    free(shufctl_succeed(NULL, "gauss --count 30 --seed 7 --summary"));
    free(shufctl_succeed(NULL, "index --n 1000 --seed 7 --at 1,2,3"));
    free(shufctl_succeed(NULL, "drop"));
    EXPECT_CHANGES(before, metrics_read(h), changes);
}

static void refusals_are_counted(void **state)
{
    (void)state;
    char *before, *after;
    struct wire *w = wire_greet(h);
    struct shuf__result_message permute = wire_permutation(10, SHUF__TRANSPORT__TRANSPORT_NONE);
    permute.permutation.algorithm = (char *)(uintptr_t) "none";
    wire_send_result(w, &permute);
    wire_expect(w, SHUF_INVALID, "none");
    before = metrics_read(h);
    wire_send_result(w, &permute);
    wire_expect(w, SHUF_INVALID, "none");
    wire_send_bytes(w, "\0\0\0\0", 4); /* a frame without a byte */
    wire_expect(w, SHUF_PROTOCOL, "frame length 0");
    wire_close(w);
    after = metrics_read(h);
    assert_true(metrics_value(after, "shufd_requests_total{kind=\"none\",status=\"PROTOCOL\"}") ==
                1);
    static const struct change changes[] = {
        {"shufd_requests_total{kind=\"permute\",status=\"INVALID\"}", 1},
        {"shufd_requests_total{kind=\"permute\",status=\"OK\"}", 0},
        {"shufd_values_total{kind=\"permute\"}", 0},
    };
    EXPECT_CHANGES(before, after, changes);
}

/* A request waits behind an endless one until the client of the endless one leaves. */
static void queue_time_and_cancellations_are_counted(void **state)
{
    (void)state;
    enum { WAIT_MS = 60 };
    struct shuf__result_message endless = wire_endless_permutation();
    /* larger than what a GPU would compute beside the endless one */
    struct shuf__result_message second = wire_permutation(2000000, SHUF__TRANSPORT__TRANSPORT_NONE);
    struct wire *a = wire_greet(h), *b = wire_greet(h);
    wire_send_result(a, &endless);
    wire_await_queued(h, 1);
    second.permutation.seed = 99;
    wire_send_result(b, &second);
    wire_await_queued(h, 2);
    char *before = metrics_read(h);
    assert_true(metrics_value(before, "shufd_queue_jobs") == 2);
    assert_true(metrics_value(before, "shufd_clients") == 3);
    usleep(WAIT_MS * 1000);
    wire_close(a);
    wire_expect(b, SHUF_OK, "");
    char *after = metrics_read(h);
    assert_true(metrics_value(after, "shufd_stage_duration_seconds_sum{stage=\"queue\"}") -
                    metrics_value(before, "shufd_stage_duration_seconds_sum{stage=\"queue\"}") >=
                WAIT_MS / 1e3);
    assert_true(
        metrics_value(after, "shufd_requests_total{kind=\"permute\",status=\"CANCELLED\"}") == 1);
    wire_close(b);
    free(before);
    free(after);
}

static void memory_and_leases_are_measured(void **state)
{
    (void)state;
    const bool cuda = strcmp(harness_backend, "cuda") == 0;
    struct wire *w = wire_greet(h);
    char *before, *after;
    free(shufctl_succeed(NULL, "drop --all"));
    wire_await_memory_free(h);
    before = metrics_read(h);
    wire_lease(w, 1 << 20, 5, SHUF__TRANSPORT__TRANSPORT_MEMFD); /* 4 MiB */
    after = metrics_read(h);
    static const struct change changes[] = {
        {"shufd_leases", 1},
        {"shufd_blocks", 1},
        {"shufd_memory_used_bytes{side=\"host\"}", 4 << 20},
        {"shufd_memory_idle_bytes{side=\"host\"}", 0},
        {"shufd_served_bytes_total{way=\"lease\"}", 4 << 20},
        {"shufd_served_bytes_total{way=\"payload\"}", 0},
    };
    assert_true(metrics_value(after, "shufd_memory_total_bytes{side=\"host\"}") >= 1e9);
    assert_true(metrics_value(after, "shufd_memory_available_bytes{side=\"host\"}") >= 1e6);
    assert_true((strstr(after, "shufd_memory_used_bytes{side=\"device\"}") != NULL) == cuda);
    EXPECT_CHANGES(before, after, changes);
    wire_send_release_all(w);
    wire_expect(w, SHUF_OK, "");
    wire_close(w);
    assert_true(metrics_read_value(h, "shufd_memory_idle_bytes{side=\"host\"}") == 4 << 20);
}

/* ---- The text ---- */

static void histogram_buckets_are_cumulative(void **state)
{
    (void)state;
    char *text = metrics_read(h), *line = text;
    double last = 0;
    unsigned rows = 0;
    static const char bucket[] = "shufd_request_duration_seconds_bucket{kind=\"hello\",le=";
    while ((line = strstr(line, bucket)) != NULL) {
        const double count = strtod(strchr(line, ' '), NULL);
        assert_true(count >= last);
        last = count;
        line += sizeof bucket;
        rows++;
    }
    assert_int_equal(rows, 26);
    assert_true(last ==
                metrics_value(text, "shufd_request_duration_seconds_count{kind=\"hello\"}"));
    assert_true(metrics_value(text, "shufd_request_duration_seconds_sum{kind=\"hello\"}") > 0);
    free(text);
}

/* The exemplar of a bucket names the last request in this bucket. */
static void exemplars_name_requests(void **state)
{
    (void)state;
    char id[64];
    struct wire *w = wire_greet(h);
    wire_check_alive(w);
    snprintf(id, sizeof id, "# {request_id=\"%.0f.%lu\"} ",
             metrics_read_value(h, "shufd_connections_total") - 1, (unsigned long)w->id);
    char *text = metrics_read_openmetrics(h);
    assert_non_null(strstr(text, id));
    assert_string_equal(text + strlen(text) - 6, "# EOF\n");
    free(text);
    text = metrics_read(h);
    assert_null(strstr(text, "request_id"));
    free(text);
    wire_close(w);
}

/* Runs a checker on the text; returns false if the machine has none. */
static bool run_checker(const char *option, const char *present, const char *checker)
{
    struct command c;
    if (shufctl_script(&c, "%s >/dev/null 2>&1", present) != 0) {
        print_message("skipped: %s fails here\n", present);
        command_free(&c);
        return false;
    }
    command_free(&c);
    const int status = shufctl_script(&c, "\"$0\" metrics%s | %s", option, checker);
    if (status != 0)
        print_message("%s%s", c.out.bytes, c.err.bytes);
    assert_int_equal(status, 0);
    assert_int_equal(c.err.size, 0);
    command_free(&c);
    return true;
}

static void promtool_accepts_metrics(void **state)
{
    (void)state;
    send_each_kind();
    if (!run_checker("", "promtool --version", "promtool check metrics"))
        skip();
}

static void openmetrics_parser_accepts_metrics(void **state)
{
    (void)state;
    send_each_kind();
    if (!run_checker(" --openmetrics", "/usr/bin/python3 -c 'import prometheus_client'",
                     "/usr/bin/python3 -c 'import sys, prometheus_client.openmetrics.parser as p\n"
                     "assert len(list(p.text_string_to_metric_families(sys.stdin.read()))) > 30'"))
        skip();
}

static void metrics_as_json(void **state)
{
    (void)state;
    char *text = shufctl_succeed(NULL, "metrics --json");
    assert_non_null(strstr(text, "\"name\": \"shufd_build_info\""));
    assert_non_null(strstr(text, "\"name\": \"process_resident_memory_bytes\""));
    assert_non_null(strstr(text, "\"le\": \"+Inf\""));
    free(text);
    shufctl_fail(64, "--json", "metrics --json --openmetrics");
}

/* ---- Users ---- */

static void users_see_only_themselves(void **state)
{
    (void)state;
    struct command c;
    char own[64];
    if (geteuid() != 0)
        skip();
    assert_int_equal(chmod(h->directory, 0755), 0);
    assert_int_equal(chmod(h->socket, 0666), 0);
    assert_int_equal(shufctl_run(&c, COMMAND_AS_NOBODY, "permute --n 100 --seed 1"), 0);
    command_free(&c);
    char *text = metrics_read(h);
    assert_true(metrics_value(text, "shufd_user_requests_total{uid=\"0\"}") > 0);
    assert_true(metrics_value(text, "shufd_user_values_total{uid=\"65534\"}") == 100);
    free(text);
    assert_int_equal(shufctl_run(&c, COMMAND_AS_NOBODY, "metrics"), 0);
    snprintf(own, sizeof own, "shufd_user_requests_total{uid=\"%d\"}", CHILD_NOBODY);
    assert_true(metrics_value(c.out.bytes, own) >= 3);
    assert_null(strstr(c.out.bytes, "uid=\"0\""));
    command_free(&c);
    assert_int_equal(shufctl_run(&c, COMMAND_AS_NOBODY, "metrics --openmetrics"), 0);
    assert_non_null(strstr(c.out.bytes, "shufd_request_duration_seconds_bucket{"));
    /* request ids count the connections of all users, so they are not shown */
    assert_null(strstr(c.out.bytes, "request_id"));
    command_free(&c);
}

/* ---- Slow requests ---- */

static void slow_requests_are_logged(void **state)
{
    (void)state;
    struct harness slow;
    char log[8192];
    struct shuf__result_message permute = wire_permutation(1000, SHUF__TRANSPORT__TRANSPORT_NONE);
    wire_start(&slow, harness_backend, "slow_request = 1ns\n");
    struct wire *w = wire_greet(&slow);
    wire_send_result(w, &permute);
    wire_expect(w, SHUF_OK, "");
    wire_check_alive(w);
    shufd_await(slow.log, log, sizeof log,
                ": slow request 2.2: permute, n 1000, 1000 values, OK, ");
    assert_non_null(strstr(log, "warning: client pid "));
    assert_non_null(strstr(log, " ms: queue "));
    assert_true(metrics_read_value(&slow, "shufd_slow_requests_total") >= 3);
    wire_close(w);
    assert_true(harness_stop(&slow));
}

static void slow_request_0_logs_nothing(void **state)
{
    (void)state;
    struct harness quick;
    char log[8192];
    wire_start(&quick, harness_backend, "slow_request = 0\n");
    struct wire *w = wire_greet(&quick);
    wire_check_alive(w);
    wire_close(w);
    assert_true(metrics_read_value(&quick, "shufd_slow_requests_total") == 0);
    shufd_read(quick.log, log, sizeof log);
    assert_null(strstr(log, "slow"));
    assert_true(harness_stop(&quick));
}

int main(int argc, char **argv)
{
    shufctl_backend = harness_backend = harness_backend_or_skip(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_counted),
        cmocka_unit_test(refusals_are_counted),
        cmocka_unit_test(queue_time_and_cancellations_are_counted),
        cmocka_unit_test(memory_and_leases_are_measured),
        cmocka_unit_test(histogram_buckets_are_cumulative),
        cmocka_unit_test(exemplars_name_requests),
        cmocka_unit_test(promtool_accepts_metrics),
        cmocka_unit_test(openmetrics_parser_accepts_metrics),
        cmocka_unit_test(metrics_as_json),
        cmocka_unit_test(users_see_only_themselves),
        cmocka_unit_test(slow_requests_are_logged),
        cmocka_unit_test(slow_request_0_logs_nothing),
    };
    return cmocka_run_group_tests(tests, shufctl_set_up, shufctl_tear_down);
}
