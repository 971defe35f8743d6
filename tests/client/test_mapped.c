/* SPDX-License-Identifier: MIT
 *
 * Memory that a process keeps mapped without a lease. Its size has a limit. If another request
 * needs the memory, the error names the process, and the process unmaps it at its next call.
 */
#include "support/client.h"
#include "support/cmocka_all.h"
#include "support/take.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MI (UINT64_C(1) << 20)
enum { LEASES = 24, N = 1 << 19 }; /* each in a block of 2 MiB */

static shuf *idle_client, *other;

static shuf_request small_request(uint64_t epoch)
{
    return (shuf_request){.permutation = {.n = N, .seed = 7, .epoch = epoch}};
}

static shuf_user own_usage(void)
{
    shuf_daemon daemon;
    assert_int_equal(shuf_daemon_status(other, &daemon), SHUF_OK);
    for (unsigned i = 0; i < daemon.users; i++)
        if (daemon.user[i].uid == geteuid())
            return daemon.user[i];
    return (shuf_user){0};
}

/* Takes LEASES leases at once, and then releases them. */
static void take_and_release(shuf *handle)
{
    shuf_lease *leases[LEASES] = {NULL};
    for (uint64_t i = 0; i < LEASES; i++) {
        const shuf_request request = small_request(i);
        assert_int_equal(shuf_lease_take(handle, &request, NULL, &leases[i]), SHUF_OK);
    }
    for (int i = 0; i < LEASES; i++)
        assert_int_equal(shuf_lease_release(handle, &leases[i]), SHUF_OK);
}

static shuf_status take_most(shuf_lease **lease)
{
    shuf_daemon daemon;
    assert_int_equal(shuf_daemon_status(other, &daemon), SHUF_OK);
    return take_buffer(other, daemon.host_limit - 4 * MI, NULL, lease);
}

static void few_idle_blocks_stay_mapped(void **state)
{
    (void)state;
    take_and_release(idle_client);
    const shuf_user use = own_usage();
    assert_in_range(use.mapped, 2 * MI, 16 * MI);
    assert_int_equal(use.mapped_pid, getpid());
}

static void refusal_names_process_with_mappings(void **state)
{
    (void)state;
    char words[128];
    shuf_lease *lease = NULL;
    take_and_release(idle_client);
    snprintf(words, sizeof words,
             "16 MiB of these have no lease but are still mapped, most of them by process %d: its "
             "next call or its end frees them; try again",
             (int)getpid());
    client_expect(other, take_most(&lease), SHUF_BUSY, words);
}

/* The daemon asks for the memory in its next reply to the process, in the reply to any call. The
 * first call here maps no block. The second call maps a block that the client has kept. */
static void next_call_unmaps_idle_blocks(void **state)
{
    (void)state;
    for (int with_lease = 0; with_lease < 2; with_lease++) {
        shuf_lease *large = NULL, *lease = NULL;
        const shuf_request request = small_request(LEASES - 1);
        take_and_release(idle_client);
        assert_int_equal(take_most(&large), SHUF_BUSY);
        if (with_lease)
            assert_int_equal(shuf_lease_take(idle_client, &request, NULL, &lease), SHUF_OK);
        else
            assert_int_equal(shuf_index(idle_client, &request.permutation, SHUF_FORWARD,
                                        &(uint64_t){1}, 1, &(uint64_t){0}),
                             SHUF_OK);
        assert_int_equal(own_usage().mapped, 0);
        if (with_lease) {
            static uint32_t values[N];
            assert_int_equal(shuf_copy(other, &request, values, sizeof values, NULL), SHUF_OK);
            assert_memory_equal(lease->data, values, sizeof values);
        }
        assert_int_equal(shuf_lease_release(idle_client, &lease), SHUF_OK);
        assert_int_equal(take_most(&large), SHUF_OK);
        assert_int_equal(shuf_lease_release(other, &large), SHUF_OK);
    }
}

static void drop_requests_unmapping(void **state)
{
    (void)state;
    shuf_dropped dropped;
    shuf_daemon ignored;
    take_and_release(idle_client);
    assert_int_equal(shuf_drop(other, SHUF_OWN, 0, &dropped), SHUF_OK);
    assert_int_equal(dropped.mapped_bytes, 16 * MI);
    assert_int_equal(shuf_daemon_status(idle_client, &ignored), SHUF_OK);
    assert_int_equal(own_usage().mapped, 0);
}

/* A forked child keeps the memory mapped. The daemon knows only that some process has it mapped. */
static void mapping_of_forked_child_has_no_name(void **state)
{
    (void)state;
    int end[2], status;
    shuf_daemon ignored;
    take_and_release(idle_client);
    assert_int_equal(pipe(end), 0);
    const pid_t child = fork();
    if (child == 0) {
        char byte;
        close(end[1]);
        _exit(read(end[0], &byte, 1) != 0);
    }
    close(end[0]);
    assert_int_equal(shuf_drop(other, SHUF_OWN, 0, NULL), SHUF_OK);
    assert_int_equal(shuf_daemon_status(idle_client, &ignored), SHUF_OK);
    assert_int_equal(own_usage().mapped, 16 * MI);
    assert_int_equal(own_usage().mapped_pid, 0);
    shuf_lease *lease = NULL;
    client_expect(other, take_most(&lease), SHUF_BUSY, "still mapped by processes: their next");
    close(end[1]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(own_usage().mapped, 0);
}

static int start(void **state)
{
    static const char *const limited[] = {"--host-memory", "128Mi", NULL};
    (void)state;
    if (!harness_start(&harness_shared, harness_backend, limited))
        return -1;
    idle_client = client_open();
    other = client_open();
    return 0;
}

static int stop(void **state)
{
    shuf_close(idle_client);
    shuf_close(other);
    return harness_stop_shared(state);
}

int main(int argc, char **argv)
{
    harness_backend = harness_backend_or_skip(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(few_idle_blocks_stay_mapped, start, stop),
        cmocka_unit_test_setup_teardown(refusal_names_process_with_mappings, start, stop),
        cmocka_unit_test_setup_teardown(next_call_unmaps_idle_blocks, start, stop),
        cmocka_unit_test_setup_teardown(drop_requests_unmapping, start, stop),
        cmocka_unit_test_setup_teardown(mapping_of_forked_child_has_no_name, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
