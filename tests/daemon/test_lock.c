/* SPDX-License-Identifier: MIT
 *
 * The lock of a killed daemon, while the kernel still frees the memory of that daemon. A child
 * imitates the killed daemon. Its first thread has ended, and its second thread keeps the lock
 * until the test ends the child.
 */
#include "support/child.h"
#include "support/cmocka_all.h"
#include "support/wire.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

static void *exit_after_delay(void *channel)
{
    const uint64_t ms = child_receive(*(int *)channel);
    nanosleep(&(struct timespec){.tv_nsec = (long)ms * 1000000}, NULL);
    _exit(0);
}

static void hold_lock(const struct harness *h)
{
    char text[32], path[HARNESS_PATH + 8];
    snprintf(path, sizeof path, "%s.lock", h->socket);
    const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
    const int length = snprintf(text, sizeof text, "%ld serving \n", (long)getpid());
    assert_int_equal(write(fd, text, (size_t)length), length);
}

static void hold_socket(const struct harness *h)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", h->socket);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 5), 0);
}

static _Noreturn void become_zombie(int channel)
{
    static int child_channel;
    pthread_attr_t attributes;
    pthread_t thread;
    child_channel = channel;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    assert_int_equal(pthread_create(&thread, &attributes, exit_after_delay, &child_channel), 0);
    pthread_exit(NULL);
}

static void die_with_lock(int channel, void *context)
{
    hold_lock(context);
    become_zombie(channel);
}

static void die_with_lock_and_socket(int channel, void *context)
{
    hold_lock(context);
    hold_socket(context);
    become_zombie(channel);
}

static void await_zombie(pid_t pid)
{
    char path[64], state = ' ';
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    for (int waited = 0; state != 'Z'; waited += 5) {
        FILE *file = fopen(path, "re");
        assert_non_null(file);
        assert_int_equal(fscanf(file, "%*d (%*[^)]) %c", &state), 1);
        fclose(file);
        assert_true(waited < HARNESS_WAIT_MS);
        usleep(5000);
    }
}

/* The old lock disappears while the next daemon waits for it. */
static void next_daemon_waits_for_lock(void **state)
{
    (void)state;
    struct harness h;
    assert_true(harness_prepare(&h, "cpu", NULL));
    const struct child dead = child_start(die_with_lock, &h);
    await_zombie(dead.pid);
    child_send(dead.channel, 500);
    assert_true(harness_restart(&h));
    child_join(&dead);
    assert_true(harness_stop(&h));
}

/* The arguments of a child that starts a daemon, which must not get the lock. */
struct refusal {
    const struct harness *h;
    pid_t lock_owner;
};

static void expect_refused(int channel, void *context)
{
    const struct refusal *refusal = context;
    const char *const arguments[] = {"--socket", refusal->h->socket, "--backend", "cpu", NULL};
    char output[4096], text[96];
    (void)channel;
    snprintf(text, sizeof text, "pid %ld, uid %ld, was killed but has not ended yet; try again",
             (long)refusal->lock_owner, (long)getuid());
    const int status = harness_run(arguments, output, sizeof output);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), EX_CANTCREAT);
    if (!strstr(output, text))
        fail_msg("\"%s\" is not in \"%s\"", text, output);
}

/* The old lock stays, with a socket or without. The next daemon gives up after a while. */
static void wait_for_lock_times_out(void **state)
{
    (void)state;
    static void (*const bodies[])(int, void *) = {die_with_lock, die_with_lock_and_socket};
    struct harness h[2];
    struct child dead[2], next[2];
    struct refusal refusals[2];
    for (int i = 0; i < 2; i++) {
        assert_true(harness_prepare(&h[i], "cpu", NULL));
        dead[i] = child_start(bodies[i], &h[i]);
        await_zombie(dead[i].pid);
        refusals[i] = (struct refusal){&h[i], dead[i].pid};
        next[i] = child_start(expect_refused, &refusals[i]);
    }
    for (int i = 0; i < 2; i++) {
        child_join(&next[i]);
        child_send(dead[i].channel, 0);
        child_join(&dead[i]);
        assert_true(harness_stop(&h[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(next_daemon_waits_for_lock),
        cmocka_unit_test(wait_for_lock_times_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
