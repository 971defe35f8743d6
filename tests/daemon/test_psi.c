/* SPDX-License-Identifier: MIT
 *
 * How the daemon learns of a shortage of memory: the kernel's pressure stall information, which the
 * test reads from a file and by a trigger of this machine, and how often the daemon measures.
 */
#include "memory/reading.h"
#include "memory/shortage.h"
#include "support/child.h"
#include "support/cmocka_all.h"
#include "support/memory_group.h"
#include "support/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#define MI (UINT64_C(1) << 20)
#define SYSTEM "/proc/pressure/memory"

enum { GROUP_MI = 32, FILE_MI = 96, MOST_MS = 20000 };

static int stalls;

static void on_stall(void *context)
{
    (void)context;
    stalls++;
}

static void stop_loop(uv_timer_t *timer)
{
    uv_stop(timer->loop);
}

/* Closes everything that the loop has open. */
static void close_loop(uv_loop_t *loop, struct shuf__psi *psi)
{
    shuf__psi_close(psi);
    uv_run(loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(loop), 0);
}

/* ---- Reads of a file ---- */

static void write_stalled(const char *path, uint64_t us)
{
    char text[128];
    snprintf(text, sizeof text, "some avg10=0.00 avg60=0.00 avg300=0.00 total=%" PRIu64 "\n", us);
    shufd_write(path, text);
}

static void stalls_are_read_from_a_plain_file(void **state)
{
    (void)state;
    char path[] = "/tmp/shuf-psi-XXXXXX";
    struct shuf__psi psi;
    uv_loop_t loop;
    close(mkstemp(path));
    uv_loop_init(&loop);
    shuf__psi_open(&psi, &loop, path, on_stall, NULL);
    assert_int_equal(psi.fd, -1); /* a plain file has no triggers */
    write_stalled(path, 5000000);
    usleep(150000);
    /* There is no earlier read to compare the first one with. */
    assert_false(shuf__psi_is_stalled(&psi));
    usleep(150000);
    write_stalled(path, 5000100);
    assert_false(shuf__psi_is_stalled(&psi));
    usleep(150000);
    write_stalled(path, 65000000);
    assert_true(shuf__psi_is_stalled(&psi));
    write_stalled(path, 5); /* the total falls, as after a boot */
    usleep(150000);
    assert_false(shuf__psi_is_stalled(&psi));
    unlink(path);
    usleep(150000);
    assert_false(shuf__psi_is_stalled(&psi));
    close_loop(&loop, &psi);
}

/* Memory is short if processes waited for a twentieth of the time. The test moves the time of the
 * last read far back. */
static void stall_threshold_is_a_twentieth(void **state)
{
    (void)state;
    enum { AGO_S = 100 };
    static const struct {
        unsigned stalled_s;
        bool is_short;
    } rows[] = {{0, false}, {4, false}, {10, true}};
    char path[] = "/tmp/shuf-psi-XXXXXX";
    struct shuf__psi psi;
    uv_loop_t loop;
    close(mkstemp(path));
    uv_loop_init(&loop);
    shuf__psi_open(&psi, &loop, path, on_stall, NULL);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        psi.read_us = uv_hrtime() / 1000 - AGO_S * UINT64_C(1000000);
        write_stalled(path, psi.stalled_us + rows[i].stalled_s * UINT64_C(1000000));
        assert_int_equal(shuf__psi_is_stalled(&psi), rows[i].is_short);
    }
    psi.read_us = 0; /* as if the file had not been read so far */
    write_stalled(path, UINT64_C(1) << 61);
    assert_false(shuf__psi_is_stalled(&psi));
    unlink(path);
    close_loop(&loop, &psi);
}

/* ---- The trigger ---- */

/* Reads a file that exceeds the memory of its group, repeatedly. */
static void thrash(int channel, void *context)
{
    static char buffer[1 << 16];
    int fd = open(context, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    child_send(channel, 1);
    for (;;)
        if (read(fd, buffer, sizeof buffer) <= 0)
            lseek(fd, 0, SEEK_SET);
}

/* Makes a file without pages in the cache. Otherwise its pages would stay charged to the group of
 * the first reader, not to the group of the test. */
static bool make_file(char *path)
{
    static char part[1 << 20];
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    memset(part, 1, sizeof part);
    bool written = true;
    for (int i = 0; i < FILE_MI && written; i++)
        written = write(fd, part, sizeof part) == sizeof part;
    if (written)
        assert_int_equal(fsync(fd), 0);
    else
        fprintf(stderr, "%s: %s\n", path, strerror(errno)); /* for example, the disk is full */
    assert_int_equal(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
    close(fd);
    return written;
}

static void wait_for_stall(uv_loop_t *loop)
{
    uv_timer_t limit;
    uv_timer_init(loop, &limit);
    uv_timer_start(&limit, stop_loop, MOST_MS, 0);
    while (stalls == 0 && uv_is_active((uv_handle_t *)&limit))
        uv_run(loop, UV_RUN_ONCE);
    uv_close((uv_handle_t *)&limit, NULL);
    uv_run(loop, UV_RUN_NOWAIT);
}

static void trigger_wakes_the_loop(void **state)
{
    (void)state;
    char path[] = "/var/tmp/shuf-psi-XXXXXX";
    struct shuf__psi psi;
    struct statfs disk;
    uv_loop_t loop;
    assert_int_equal(statfs("/var/tmp", &disk), 0);
    uv_loop_init(&loop);
    shuf__psi_open(&psi, &loop, SYSTEM, on_stall, NULL);
    if (psi.fd < 0 || disk.f_type == TMPFS_MAGIC || !memory_group_make(GROUP_MI * MI)) {
        close_loop(&loop, &psi);
        skip();
    }
    if (!make_file(path)) {
        unlink(path);
        memory_group_remove();
        close_loop(&loop, &psi);
        skip();
    }
    memory_group_enter();
    struct child child = child_start(thrash, path);
    memory_group_leave();
    child_receive(child.channel);
    wait_for_stall(&loop);
    child_kill(&child);
    unlink(path);
    memory_group_remove();
    close_loop(&loop, &psi);
    assert_true(stalls > 0);
}

/* ---- Readings: some in sequence, then a share of the time ---- */

#define SECOND_NS UINT64_C(1000000000)

static struct shuf__reading reading_with(uint64_t debt_ns, uint64_t ago_ns)
{
    return (struct shuf__reading){.debt_ns = debt_ns, .end_ns = uv_hrtime() - ago_ns};
}

static void first_readings_are_allowed(void **state)
{
    const struct shuf__reading never = {0}, some = reading_with(SHUF__READING_BURST_NS, 0);
    (void)state;
    assert_false(shuf__reading_is_fresh(&never));
    assert_false(shuf__reading_is_fresh(&some));
}

/* Readings that took 1 s may be repeated after 200 s. */
static void readings_take_a_share_of_the_time(void **state)
{
    const uint64_t took = SECOND_NS;
    const struct shuf__reading early = reading_with(took, 190 * SECOND_NS),
                               late = reading_with(took, 200 * SECOND_NS);
    (void)state;
    assert_true(shuf__reading_is_fresh(&early));
    assert_false(shuf__reading_is_fresh(&late));
}

/* The time is time of the thread, so the sum has these bounds on any machine. */
static void reading_adds_its_time(void **state)
{
    struct shuf__reading reading = {0};
    (void)state;
    const uint64_t start = shuf__reading_thread_ns();
    shuf__reading_begin(&reading);
    const uint64_t begin = shuf__reading_thread_ns();
    while (shuf__reading_thread_ns() - begin < SHUF__READING_BURST_NS + 1)
        ;
    shuf__reading_end(&reading);
    assert_in_range(reading.debt_ns, SHUF__READING_BURST_NS + 1, shuf__reading_thread_ns() - start);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stalls_are_read_from_a_plain_file),
        cmocka_unit_test(stall_threshold_is_a_twentieth),
        cmocka_unit_test(trigger_wakes_the_loop),
        cmocka_unit_test(first_readings_are_allowed),
        cmocka_unit_test(readings_take_a_share_of_the_time),
        cmocka_unit_test(reading_adds_its_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
