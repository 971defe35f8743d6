/* SPDX-License-Identifier: MIT
 *
 * shufctl top: the rates of a daemon under a known load, on a terminal and in a pipe.
 */
#include "support/shufctl.h"
#include "support/wire.h"
#include "verb_top.h"

#include "support/cmocka_all.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

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
 * default. */
static void signals_end_the_first_process(void **state)
{
    (void)state;
    struct command c;
    const int status = shufctl_script(
        &c, "unshare --pid --fork \"$0\" top --interval 1h >/dev/null & u=$!; i=0\n"
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

/* ---- on a terminal ---- */

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

/* ---- the numbers ---- */

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
    return cmocka_run_group_tests(tests, shufctl_set_up, shufctl_tear_down);
}
