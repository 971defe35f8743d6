/* SPDX-License-Identifier: MIT
 *
 * host_warm and device_warm with a real daemon. The first large result uses memory that was touched
 * in advance. SIGHUP changes the settings.
 */
#include "shuf.h"
#include "support/cmocka_all.h"
#include "support/shufd.h"
#include "support/wire.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define MI (UINT64_C(1) << 20)

enum { N = 60 << 20, PAGES = 4 * N / 4096 }; /* 240 MiB */

static uint64_t page_faults(const struct harness *h)
{
    char path[64];
    uint64_t faults = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)h->pid);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %" SCNu64, &faults), 1);
    fclose(file);
    return faults;
}

/* Takes a lease. Returns the number of pages that the daemon touched for the first time. */
static uint64_t lease_and_count_page_faults(const struct harness *h, uint64_t seed, uint64_t *used)
{
    shuf *handle;
    shuf_lease *lease = NULL;
    const shuf_request request = {.permutation = {.n = N, .seed = seed}};
    assert_int_equal(shuf_connect(&handle, h->socket), SHUF_OK);
    const uint64_t before = page_faults(h);
    assert_int_equal(shuf_lease_take(handle, &request, NULL, &lease), SHUF_OK);
    const uint64_t faults = page_faults(h) - before;
    /* on a GPU the workspace is not counted here, because it is in device memory */
    *used = wire_status(h).host_used;
    assert_int_equal(shuf_lease_release(handle, &lease), SHUF_OK);
    shuf_close(handle);
    return faults;
}

static void rewrite(const struct harness *h, const char *text)
{
    char path[HARNESS_PATH + 8];
    snprintf(path, sizeof path, "%s/conf", h->directory);
    shufd_write(path, text);
    kill(h->pid, SIGHUP);
}

static void first_result_uses_touched_memory(void **state)
{
    (void)state;
    struct harness h;
    uint64_t bytes;
    wire_start(&h, harness_backend,
               "host_warm = 256Mi\ndevice_warm = 256Mi\nhost_memory = 1Gi\ndevice_memory = 1Gi\n");
    const uint64_t device = strncmp(harness_backend, "cuda", 4) == 0 ? 256 * MI : 0;
    WIRE_AWAIT(&h, s, s.host_idle == 256 * MI && s.device_idle == device);
    /* A sanitizer touches its own memory too. */
    assert_true(lease_and_count_page_faults(&h, 1, &bytes) < PAGES / (TEST_SANITIZED ? 2 : 8));
    assert_int_equal(bytes, 256 * MI);
    assert_true(harness_stop(&h));
}

static void reload_changes_warm_blocks(void **state)
{
    (void)state;
    struct harness h;
    wire_start(&h, harness_backend, "host_memory = 1Gi\ndevice_memory = 1Gi\n");
    assert_int_equal(wire_status(&h).memory_used, 0);
    rewrite(&h, "host_memory = 1Gi\ndevice_memory = 1Gi\nhost_warm = 64Mi\ndevice_warm = 64Mi\n");
    WIRE_AWAIT(&h, s, s.memory_used == 64 * MI && s.host_used == 64 * MI);
    rewrite(&h, "host_memory = 1Gi\ndevice_memory = 1Gi\nhost_warm = 32Mi\ndevice_warm = 32Mi\n");
    WIRE_AWAIT(&h, s, s.memory_used == 32 * MI && s.host_used == 32 * MI);
    rewrite(&h, "host_memory = 1Gi\ndevice_memory = 1Gi\n");
    WIRE_AWAIT(&h, s, s.memory_used == 0 && s.host_used == 0);
    assert_true(harness_stop(&h));
}

int main(int argc, char **argv)
{
    harness_backend = harness_backend_or_skip(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_result_uses_touched_memory),
        cmocka_unit_test(reload_changes_warm_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
