/* SPDX-License-Identifier: MIT
 *
 * Leases of libshuf from a real daemon, on the backend of the command line: the values of every
 * transport, daemons that are killed while leases exist, and limits. A limit ends in a status,
 * without leaks.
 */
#include "shuf.h"
#include "support/cmocka_all.h"
#include "support/descriptors.h"
#include "support/expected.h"
#include "support/golden.h"
#include "support/harness.h"
#include "support/random.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static shuf *open_handle(const char *socket)
{
    shuf *handle;
    if (shuf_connect(&handle, socket) != SHUF_OK)
        fail_msg("%s", shuf_message(handle));
    return handle;
}

static int last_transport(void)
{
    return strncmp(harness_backend, "cuda", 4) == 0 ? SHUF_CUDA_IPC : SHUF_MEMFD;
}

/* A random transport among those of the backend. */
static int random_transport(void)
{
    return SHUF_INLINE << random_below(last_transport() == SHUF_CUDA_IPC ? 4 : 2);
}

static void take(shuf *handle, const shuf_request *request, int transport, shuf_lease **lease)
{
    const shuf_lease_options options = {.transports = (unsigned)transport};
    if (shuf_lease_take(handle, request, &options, lease) != SHUF_OK)
        fail_msg("%s", shuf_message(handle));
    assert_true((int)(*lease)->transport == transport || (*lease)->result.shape.bytes == 0);
    assert_int_equal(strncmp((*lease)->device_id, "GPU-", 4) == 0,
                     (int)(*lease)->transport >= SHUF_CUDA_FD);
}

static void *read_all(shuf *handle, const shuf_lease *lease)
{
    void *bytes = malloc(lease->result.shape.bytes + 1);
    if (shuf_lease_read(handle, lease, 0, lease->result.shape.bytes, bytes) != SHUF_OK)
        fail_msg("%s", shuf_message(handle));
    return bytes;
}

static void check_values(shuf *handle, const shuf_lease *lease, const shuf_request *request)
{
    uint64_t count, *values = expected_values(request, &count);
    void *bytes = read_all(handle, lease);
    assert_int_equal(lease->result.shape.bytes, count * lease->result.shape.width);
    assert_true(expected_equal(values, bytes, lease->result.shape.width, count));
    free(values);
    free(bytes);
}

static void check_golden(shuf *handle, const struct golden *row, int transport, shuf_dtype dtype,
                         shuf_lease **lease)
{
    shuf_request request = {.permutation = {.algorithm = row->algorithm,
                                            .n = row->n,
                                            .seed = row->seed,
                                            .epoch = row->epoch,
                                            .dtype = dtype,
                                            .fingerprint = true}};
    take(handle, &request, transport, lease);
    assert_int_equal((*lease)->result.fingerprint, row->fingerprint);
    void *bytes = read_all(handle, *lease);
    uint64_t *values = malloc(row->n * sizeof *values);
    for (uint64_t i = 0; i < row->n; i++)
        values[i] = expected_read(bytes, (*lease)->result.shape.width, i);
    for (unsigned i = 0; i < row->count; i++)
        assert_int_equal(values[golden_position(row, i)], row->values[i]);
    assert_int_equal(golden_fingerprint(values, row->n), row->fingerprint);
    free(values);
    free(bytes);
}

/* The golden table through every transport of the backend. */
static void golden_table_matches(void **state)
{
    (void)state;
    for (int transport = SHUF_INLINE; transport <= last_transport(); transport <<= 1) {
        struct golden row;
        shuf_lease *lease = NULL;
        shuf *handle = open_handle(harness_shared.socket);
        FILE *table = golden_open("permute.txt");
        for (int rows = 0; golden_next(table, &row); rows++)
            if (rows % GOLDEN_STEP == 0)
                check_golden(handle, &row, transport, rows % 2 ? SHUF_I64 : SHUF_U32, &lease);
        fclose(table);
        shuf_close(handle);
    }
}

static shuf_request random_request(uint64_t n_limit)
{
    shuf_request request = {.permutation = {
                                .n = random_size(n_limit),
                                .seed = random_below(3),
                                .epoch = random_below(3),
                                .epochs = random_below(4),
                                .dtype = (shuf_dtype)random_below(4),
                            }};
    expected_random_view(&request);
    return request;
}

/* Takes, exchanges and releases several leases in random order, each by a random transport. */
static void random_leases_match_reference(void **state)
{
    (void)state;
    enum { LEASES = 12, STEPS = 600 };
    shuf_lease *leases[LEASES] = {NULL};
    shuf_request requests[LEASES];
    shuf *handle = open_handle(harness_shared.socket);
    random_start("random_leases_match_reference");
    for (int step = 0; step < STEPS; step++) {
        uint64_t i = random_below(LEASES);
        if (leases[i] && random_below(4) == 0) {
            assert_int_equal(shuf_lease_release(handle, &leases[i]), SHUF_OK);
            leases[i] = NULL;
            continue;
        }
        requests[i] = random_request(random_below(8) == 0 ? 3000000 : 3000);
        take(handle, &requests[i], random_transport(), &leases[i]);
        uint64_t other = random_below(LEASES);
        if (leases[other])
            check_values(handle, leases[other], &requests[other]);
    }
    for (int i = 0; i < LEASES; i++)
        if (leases[i])
            check_values(handle, leases[i], &requests[i]);
    shuf_close(handle);
}

static void await_no_leases(const char *socket)
{
    shuf *handle = open_handle(socket);
    shuf_daemon status;
    for (int waited = 0;; waited += 5) {
        assert_int_equal(shuf_daemon_status(handle, &status), SHUF_OK);
        if (status.leases == 0)
            break;
        assert_true(waited < HARNESS_WAIT_MS);
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    shuf_close(handle);
}

static void prefetch_and_take(shuf *handle, int transport)
{
    const shuf_lease_options options = {.transports = (unsigned)transport};
    shuf_request request = {.permutation = {.n = 100003, .seed = 900 + (uint64_t)transport}};
    shuf_daemon before, after;
    shuf_lease *lease = NULL;
    assert_int_equal(shuf_daemon_status(handle, &before), SHUF_OK);
    for (request.permutation.epoch = 0; request.permutation.epoch < SHUF_PREFETCHES;
         request.permutation.epoch++)
        assert_int_equal(shuf_prefetch(handle, &request, &options), SHUF_OK);
    for (request.permutation.epoch = 0; request.permutation.epoch < SHUF_PREFETCHES;
         request.permutation.epoch++) {
        take(handle, &request, transport, &lease);
        assert_true(lease->shared);
        check_values(handle, lease, &request);
    }
    assert_int_equal(shuf_lease_release(handle, &lease), SHUF_OK);
    assert_int_equal(shuf_daemon_status(handle, &after), SHUF_OK);
    assert_int_equal(after.computed, before.computed + SHUF_PREFETCHES);
    assert_true(after.leases == 0 || transport == SHUF_INLINE); /* an inline result has no lease */
}

static void prefetched_result_is_taken(void **state)
{
    (void)state;
    for (int transport = SHUF_INLINE; transport <= last_transport(); transport <<= 1) {
        shuf *handle = open_handle(harness_shared.socket);
        prefetch_and_take(handle, transport);
        shuf_close(handle);
        await_no_leases(harness_shared.socket);
    }
}

static void take_and_release_1000_leases(int transport)
{
    enum { LEASES = 1000 };
    static shuf_lease *leases[LEASES];
    shuf *handle = open_handle(harness_shared.socket);
    shuf_daemon status;
    for (uint64_t i = 0; i < LEASES; i++) {
        shuf_request request = {.permutation = {.n = 100, .seed = 5, .epoch = i % 10}};
        leases[i] = NULL;
        take(handle, &request, transport, &leases[i]);
    }
    assert_int_equal(shuf_daemon_status(handle, &status), SHUF_OK);
    assert_int_equal(status.leases, transport == SHUF_INLINE ? 0 : LEASES);
    for (uint64_t i = 0; i < LEASES; i++)
        if (i % 2 == 0)
            assert_int_equal(shuf_lease_release(handle, &leases[i]), SHUF_OK);
    shuf_request request = {.permutation = {.n = 100, .seed = 5, .epoch = 9}};
    check_values(handle, leases[999], &request);
    shuf_close(handle); /* half of the leases are not released yet */
}

static void thousand_leases_leak_no_descriptors(void **state)
{
    (void)state;
    for (int transport = SHUF_INLINE; transport <= last_transport(); transport <<= 1) {
        take_and_release_1000_leases(transport);
        int before = count_descriptors();
        take_and_release_1000_leases(transport);
        assert_int_equal(count_descriptors(), before);
    }
}

/* The daemon refuses a third lease at a limit of two. If the same request gives back an old lease,
 * it succeeds, and the client gets the descriptor of the block. */
static void lease_limit_is_refused_then_served(void **state)
{
    (void)state;
    char path[HARNESS_PATH + 8];
    const char *const extra[] = {"--config", path, NULL};
    struct harness h;
    assert_true(harness_prepare(&h, harness_backend, extra));
    snprintf(path, sizeof path, "%s/conf", h.directory);
    FILE *file = fopen(path, "we");
    fputs("leases = 2\n", file);
    fclose(file);
    assert_true(harness_restart(&h));
    shuf *handle = open_handle(h.socket);
    for (int transport = SHUF_MEMFD; transport <= last_transport(); transport <<= 1) {
        const shuf_lease_options options = {.transports = (unsigned)transport};
        shuf_request request = {.permutation = {.n = 1000, .seed = 7}};
        shuf_lease *leases[2] = {NULL, NULL}, *third = NULL;
        take(handle, &request, transport, &leases[0]);
        request.permutation.epoch = 1;
        take(handle, &request, transport, &leases[1]);
        request.permutation.epoch = 2;
        assert_int_equal(shuf_lease_take(handle, &request, &options, &third), SHUF_BUSY);
        assert_non_null(strstr(shuf_message(handle), "leases 2"));
        assert_null(third);
        take(handle, &request, transport, &leases[1]); /* in exchange for the old lease */
        check_values(handle, leases[1], &request);
        assert_int_equal(shuf_lease_release(handle, &leases[0]), SHUF_OK);
        assert_int_equal(shuf_lease_release(handle, &leases[1]), SHUF_OK);
    }
    shuf_close(handle);
    await_no_leases(h.socket);
    assert_true(harness_stop(&h));
}

/* The values of old leases stay valid after their daemon was killed. New leases come from the next
 * daemon. */
static void leases_outlive_killed_daemons(void **state)
{
    (void)state;
    for (int transport = SHUF_INLINE; transport <= last_transport(); transport <<= 1) {
        shuf_request small = {.permutation = {.n = 1000, .seed = 7}},
                     large = {.permutation = {.n = 3000000, .seed = 8}};
        shuf_request next = {.permutation = {.n = 1000, .seed = 9}};
        shuf_lease *one = NULL, *other = NULL, *third = NULL;
        shuf *handle = open_handle(harness_shared.socket);
        take(handle, &small, transport, &one);
        take(handle, &large, transport, &other);
        harness_kill(&harness_shared, SIGKILL);
        check_values(handle, one, &small);
        check_values(handle, other, &large);
        assert_true(harness_restart(&harness_shared));
        /* The block may have the same number as an old one. */
        take(handle, &next, transport, &third);
        check_values(handle, third, &next);
        check_values(handle, one, &small);
        check_values(handle, other, &large);
        take(handle, &large, transport, &one);
        check_values(handle, one, &large);
        assert_int_equal(shuf_lease_release(handle, &other), SHUF_OK);
        assert_int_equal(shuf_lease_release(handle, &one), SHUF_OK);
        check_values(handle, third, &next);
        assert_int_equal(shuf_lease_release(handle, &third), SHUF_OK);
        shuf_close(handle);
        await_no_leases(harness_shared.socket);
    }
}

/* A lease with an event arrives before its values. libshuf waits for the event when it reads
 * them. */
static void lease_with_event_is_awaited(void **state)
{
    (void)state;
    const shuf_lease_options options = {.transports = SHUF_CUDA_IPC | SHUF_MEMFD, .event = true};
    shuf *handle = open_handle(harness_shared.socket);
    shuf_lease *lease = NULL;
    for (uint64_t epoch = 0; epoch < 8; epoch++) {
        shuf_request request = {
            .permutation = {.n = epoch % 2 ? 1000 : 5000000, .seed = 50, .epoch = epoch}};
        assert_int_equal(shuf_lease_take(handle, &request, &options, &lease), SHUF_OK);
        check_values(handle, lease, &request);
    }
    shuf_close(handle);
}

/* A forked child releases the lease and closes the handle of its parent. */
static int use_leases_in_child(shuf *handle, shuf_lease *leases[2])
{
    shuf_lease *more = NULL;
    shuf_request request = {.permutation = {.n = 1000}};
    return shuf_lease_take(handle, &request, NULL, &more) != SHUF_INVALID ||
           shuf_lease_release(handle, &leases[0]) != SHUF_OK || (shuf_close(handle), false);
}

/* The parent's leases stay valid, in the parent and in the daemon. */
static void leases_survive_fork(void **state)
{
    (void)state;
    shuf *handle = open_handle(harness_shared.socket);
    for (int transport = SHUF_MEMFD; transport <= last_transport(); transport <<= 1) {
        int end;
        shuf_daemon status;
        shuf_request request = {.permutation = {.n = 1000, .seed = 7}},
                     large = {.permutation = {.n = 3000000, .seed = 8}};
        shuf_lease *leases[2] = {NULL, NULL};
        take(handle, &large, transport, &leases[0]);
        take(handle, &request, transport, &leases[1]);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0)
            _exit(use_leases_in_child(handle, leases));
        assert_int_equal(waitpid(child, &end, 0), child);
        assert_true(WIFEXITED(end) && WEXITSTATUS(end) == 0);
        assert_int_equal(shuf_daemon_status(handle, &status), SHUF_OK);
        assert_int_equal(status.leases, 2);
        check_values(handle, leases[0], &large);
        check_values(handle, leases[1], &request);
        assert_int_equal(shuf_lease_release(handle, &leases[0]), SHUF_OK);
        assert_int_equal(shuf_lease_release(handle, &leases[1]), SHUF_OK);
    }
    shuf_close(handle);
}

static void missing_transports_are_refused(void **state)
{
    (void)state;
    shuf *handle = open_handle(harness_shared.socket);
    for (int transport = last_transport() << 1; transport <= SHUF_CUDA_IPC; transport <<= 1) {
        const shuf_lease_options options = {.transports = (unsigned)transport};
        shuf_request request = {.permutation = {.n = 10}};
        shuf_lease *lease = NULL;
        assert_int_equal(shuf_lease_take(handle, &request, &options, &lease), SHUF_INVALID);
        assert_non_null(
            strstr(shuf_message(handle), shuf_transport_name((shuf_transport)transport)));
        assert_int_equal(shuf_prefetch(handle, &request, &options), SHUF_INVALID);
    }
    shuf_close(handle);
}

int main(int argc, char **argv)
{
    harness_backend = harness_backend_or_skip(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_table_matches),
        cmocka_unit_test(random_leases_match_reference),
        cmocka_unit_test(prefetched_result_is_taken),
        cmocka_unit_test(thousand_leases_leak_no_descriptors),
        cmocka_unit_test(lease_limit_is_refused_then_served),
        cmocka_unit_test(lease_with_event_is_awaited),
        cmocka_unit_test(leases_survive_fork),
        cmocka_unit_test(missing_transports_are_refused),
        cmocka_unit_test(leases_outlive_killed_daemons),
    };
    return cmocka_run_group_tests(tests, harness_start_shared, harness_stop_shared);
}
