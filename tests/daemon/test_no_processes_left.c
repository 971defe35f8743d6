/* SPDX-License-Identifier: MIT
 *
 * Clients send sockets whose close() takes long, and the daemon can start no process to close them.
 * Run it with the libraries old_kernel and no_processes. When no further connection has room, the
 * daemon accepts none, but serves those that it has, and does not spin.
 */
#include "support/cmocka_all.h"
#include "support/lingering.h"
#include "support/shufd.h"
#include "support/wire.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { FILES = 1024, MOST = 100 };

static struct harness h;

/* Without the libraries the kernel refuses the descriptor. */
static void send_and_leave(void)
{
    struct wire *w = wire_open(&h);
    const int fd = lingering_make();
    assert_true(harness_pause(&h)); /* so the last copy is not closed here */
    lingering_arm(fd);
    assert_int_equal(wire_try_descriptors(w->fd, "\x40", 1, &fd, 1, 0), 1);
    close(fd);
    wire_close(w);
    harness_continue(&h);
}

static bool is_logged(const char *text)
{
    char log[1 << 14];
    shufd_read(h.log, log, sizeof log);
    return strstr(log, text);
}

/* In units of 10 ms. */
static unsigned long processor_time(void)
{
    char path[64];
    unsigned long user = 0, system = 0;
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)h.pid);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file,
                            "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
                            &user, &system),
                     2);
    fclose(file);
    return user + system;
}

static void no_more_connections(void **state)
{
    static const char text[] =
        "accept: too many connections whose clients sent descriptors wait to "
        "be closed; trying again in 100 ms";
    int sent = 0;
    (void)state;
    if (!getenv("LD_PRELOAD"))
        skip();
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &(struct rlimit){FILES, FILES}), 0);
    wire_start(&h, "cpu", "");
    struct wire *w = wire_greet(&h);
    wire_check_alive(w);
    while (!is_logged(text)) {
        assert_true(sent++ < MOST);
        send_and_leave();
        wire_check_alive(w);
        usleep(10000);
    }
    const unsigned long before = processor_time();
    sleep(2);
    assert_true(processor_time() - before < 100); /* half of the time */
    wire_check_alive(w);
    wire_close(w);
    assert_int_equal(harness_kill(&h, SIGTERM), 0);
    lingering_end_all();
    assert_true(harness_stop(&h));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_more_connections)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
