/* SPDX-License-Identifier: MIT
 *
 * Leases of libshuf from a real daemon, on the backend of the command line: the golden table, every
 * view and type with all values by every transport, daemons that end or are killed while leases
 * exist, and limits. A limit ends in a status, without leaks.
 */
#include "shuf.h"
#include "support/child.h"
#include "support/client.h"
#include "support/cmocka_all.h"
#include "support/expected.h"
#include "support/golden.h"
#include "support/harness.h"
#include "support/random.h"
#include "support/wire.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The transports of the backend come first. */
static const shuf_transport transports[] = {SHUF_INLINE, SHUF_MEMFD, SHUF_CUDA_FD, SHUF_CUDA_IPC};

static int transport_count(void)
{
    return harness_is_cuda() ? 4 : 2;
}

static bool is_host(shuf_transport transport)
{
    return transport == SHUF_INLINE || transport == SHUF_MEMFD;
}

static int last_transport(void)
{
    return (int)transports[transport_count() - 1];
}

/* A random transport among those of the backend. */
static int random_transport(void)
{
    return (int)transports[random_below((uint64_t)transport_count())];
}

static void take(shuf *handle, const shuf_request *request, int transport, shuf_lease **lease)
{
    const shuf_lease_options options = {.transports = (unsigned)transport};
    if (shuf_lease_take(handle, request, &options, lease) != SHUF_OK)
        fail_msg("%s: %s", shuf_transport_name((shuf_transport)transport), shuf_message(handle));
    const shuf_transport got = (*lease)->transport; /* a result without values is inline */
    assert_true((int)got == transport || (*lease)->result.shape.bytes == 0);
    assert_int_equal((*lease)->device_id[0] == '\0', is_host(got));
    assert_int_equal(strncmp((*lease)->device_id, "GPU-", 4) == 0, !is_host(got));
    assert_int_equal((*lease)->id == 0, got == SHUF_INLINE);
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
        shuf *handle = client_open();
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
    shuf *handle = client_open();
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

static void await_no_leases(const struct harness *h)
{
    shuf *handle = client_open_at(h);
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
        shuf *handle = client_open();
        prefetch_and_take(handle, transport);
        shuf_close(handle);
        await_no_leases(&harness_shared);
    }
}

static void take_and_release_1000_leases(int transport)
{
    enum { LEASES = 1000 };
    static shuf_lease *leases[LEASES];
    shuf *handle = client_open();
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
    shuf *handle = client_open_at(&h);
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
    await_no_leases(&h);
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
        shuf *handle = client_open();
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
        await_no_leases(&harness_shared);
    }
}

/* A lease with an event arrives before its values. libshuf waits for the event when it reads
 * them. */
static void lease_with_event_is_awaited(void **state)
{
    (void)state;
    const shuf_lease_options options = {.transports = SHUF_CUDA_IPC | SHUF_MEMFD, .event = true};
    shuf *handle = client_open();
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
    shuf *handle = client_open();
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

/* ---- Every transport ---- */

static uint64_t read_value(shuf *handle, const shuf_lease *lease, uint64_t index)
{
    uint64_t value = 0;
    unsigned width = lease->result.shape.width;
    assert_int_equal(shuf_lease_read(handle, lease, index * width, width, &value), SHUF_OK);
    if (lease->device_id[0] == '\0')
        assert_int_equal(expected_read(lease->data, width, index), value);
    return value; /* the value is in the low bytes */
}

/* ---- Values ---- */

static void check_row(shuf *handle, const struct golden *row, const shuf_lease *lease)
{
    assert_int_equal(lease->result.fingerprint, row->fingerprint);
    assert_int_equal(lease->result.shape.count, row->n);
    for (unsigned i = 0; i < row->count; i++)
        assert_int_equal(read_value(handle, lease, golden_position(row, i)), row->values[i]);
}

/* Exchanges each lease for the next one in one round trip, like a training loop. */
static void golden_table_matches_in_exchange(void **state)
{
    (void)state;
    int rows = 0;
    struct golden row;
    shuf *handle = client_open();
    FILE *table = golden_open("permute.txt");
    shuf_lease *leases[4] = {NULL};
    for (; golden_next(table, &row); rows++) {
        const shuf_request request = {.permutation = {.algorithm = row.algorithm,
                                                      .n = row.n,
                                                      .seed = row.seed,
                                                      .epoch = row.epoch,
                                                      .fingerprint = true}};
        for (int i = 0; i < transport_count(); i++) {
            take(handle, &request, transports[i], &leases[i]);
            check_row(handle, &row, leases[i]);
        }
    }
    for (int i = 0; i < transport_count(); i++)
        assert_int_equal(shuf_lease_release(handle, &leases[i]), SHUF_OK);
    assert_true(rows > 100);
    fclose(table);
    shuf_close(handle);
}

static shuf_request random_request_of_all(void)
{
    static const char *const algorithms[] = {"primefold", "philox24", "lcg"};
    shuf_request request = {.permutation = {
                                .algorithm = algorithms[random_below(3)],
                                .n = random_size(300000),
                                .seed = random_u64(),
                                .epoch = random_u64(),
                                .epochs = random_below(4),
                                .dtype = (shuf_dtype)random_below(4),
                            }};
    expected_random_view(&request);
    return request;
}

static void check_lease(shuf *handle, const shuf_lease *lease, const uint64_t *values,
                        uint64_t count)
{
    const shuf_shape *shape = &lease->result.shape;
    void *copy = malloc(shape->bytes + 1);
    assert_int_equal(shape->rows * shape->count, count);
    assert_int_equal(shape->bytes, count * shape->width);
    assert_int_equal(shuf_lease_read(handle, lease, 0, shape->bytes, copy), SHUF_OK);
    assert_true(expected_equal(values, copy, shape->width, count));
    if (is_host(lease->transport) && count > 0)
        assert_memory_equal(lease->data, copy, shape->bytes);
    assert_int_equal(shuf_lease_read(handle, lease, 0, shape->bytes + 1, copy), SHUF_INVALID);
    free(copy);
}

static void random_views_and_types_match(void **state)
{
    (void)state;
    shuf *handle = client_open();
    shuf_lease *lease = NULL;
    random_start("random_views_and_types_match");
    for (int i = 0; i < 60; i++) {
        uint64_t count;
        const shuf_request request = random_request_of_all();
        uint64_t *values = expected_values(&request, &count);
        for (int t = 0; t < transport_count(); t++) {
            if (count > 0) {
                take(handle, &request, transports[t], &lease);
            } else { /* a result without values is always inline */
                const shuf_lease_options options = {.transports = transports[t]};
                assert_int_equal(shuf_lease_take(handle, &request, &options, &lease), SHUF_OK);
                assert_true(lease->transport == SHUF_INLINE && !lease->data);
            }
            check_lease(handle, lease, values, count);
        }
        free(values);
    }
    assert_int_equal(shuf_lease_release(handle, &lease), SHUF_OK);
    shuf_close(handle);
}

/* The values are large, because only such values show that the permutation has 2^62 values. */
static void large_n_matches(void **state)
{
    (void)state;
    const shuf_request request = {.permutation = {.n = UINT64_C(1) << 62,
                                                  .seed = 3,
                                                  .view = SHUF_VIEW_SLICE,
                                                  .offset = (UINT64_C(1) << 62) - 50001,
                                                  .count = 50000,
                                                  .stride = 1,
                                                  .fingerprint = true}};
    shuf *handle = client_open();
    shuf_lease *plain = NULL, *lease = NULL;
    take(handle, &request, SHUF_INLINE, &plain);
    uint64_t *values = malloc(50000 * sizeof *values);
    memcpy(values, plain->data, 50000 * sizeof *values);
    assert_int_equal(golden_fingerprint(values, 50000), plain->result.fingerprint);
    for (int i = 0; i < transport_count(); i++) {
        take(handle, &request, transports[i], &lease);
        check_lease(handle, lease, values, 50000);
        assert_int_equal(lease->result.fingerprint, plain->result.fingerprint);
    }
    free(values);
    shuf_close(handle); /* ends both leases */
}

/* ---- The choice ---- */

static void transport_with_least_copying_is_chosen(void **state)
{
    (void)state;
    const shuf_request request = {.permutation = {.n = 1000, .seed = 1}};
    shuf_lease_options all = {.transports = 0};
    shuf *handle = client_open();
    shuf_lease *lease = NULL;
    for (int i = 0; i < 4; i++)
        all.transports |= transports[i];
    assert_int_equal(shuf_lease_take(handle, &request, &all, &lease), SHUF_OK);
    assert_int_equal(lease->transport, transport_count() == 4 ? SHUF_CUDA_FD : SHUF_MEMFD);
    assert_int_equal(shuf_lease_take(handle, &request, NULL, &lease), SHUF_OK);
    assert_int_equal(lease->transport, SHUF_MEMFD);
    assert_int_equal(shuf_lease_release(handle, &lease), SHUF_OK);
    shuf_close(handle);
}

static void missing_transports_are_refused(void **state)
{
    (void)state;
    const shuf_request request = {.permutation = {.n = 1000, .seed = 1}};
    shuf *handle = client_open();
    for (int i = transport_count(); i < 4; i++) {
        char text[96];
        shuf_lease *lease = NULL;
        const shuf_lease_options options = {.transports = transports[i]};
        snprintf(text, sizeof text, "transport %s: the backend %s has only memfd, inline",
                 shuf_transport_name(transports[i]), harness_backend);
        assert_int_equal(shuf_lease_take(handle, &request, &options, &lease), SHUF_INVALID);
        assert_string_equal(shuf_message(handle), text);
        assert_null(lease);
        assert_int_equal(shuf_prefetch(handle, &request, &options), SHUF_INVALID);
    }
    shuf_close(handle);
}

/* libshuf unmaps idle blocks when the daemon needs their memory for another result. */
static void idle_mappings_are_freed_for_results(void **state)
{
    (void)state;
    struct harness h;
    wire_start(&h, harness_backend, "host_memory = 8Mi\ndevice_memory = 8Mi\n");
    shuf *handle = client_open_at(&h);
    shuf_lease *lease = NULL;
    for (int i = 1; i < transport_count(); i++) {
        for (uint64_t seed = 0; seed < 4; seed++) {
            const shuf_request request = {.permutation = {.n = 1000, .seed = seed}};
            take(handle, &request, transports[i], &lease);
        }
        const shuf_request large = {.permutation = {.n = 1500000, .seed = 9}};
        take(handle, &large, transports[i], &lease);
        assert_int_equal(shuf_lease_release(handle, &lease), SHUF_OK);
        lease = NULL;
    }
    shuf_close(handle);
    assert_true(harness_stop(&h));
}

static void ipc_leases_with_events_are_awaited(void **state)
{
    (void)state;
    if (transport_count() < 4)
        skip();
    const shuf_lease_options options = {.transports = SHUF_CUDA_IPC, .event = true};
    shuf *handle = client_open();
    shuf_lease *lease = NULL;
    int events = 0;
    for (uint64_t i = 0; i < 10; i++) {
        uint64_t count;
        const shuf_request request = {.permutation = {.n = 5000000, .seed = i, .epoch = 77}};
        uint64_t *values = expected_values(&request, &count);
        assert_int_equal(shuf_lease_take(handle, &request, &options, &lease), SHUF_OK);
        events += lease->event != NULL;
        check_lease(handle, lease, values, count); /* waits for the event */
        free(values);
    }
    assert_true(events > 0);
    shuf_close(handle);
}

/* ---- Ends ---- */

static void check_lease_outlives_daemon(int signal)
{
    struct harness h;
    uint64_t count;
    const shuf_request request = {.permutation = {.n = 300000, .seed = 5}};
    uint64_t *values = expected_values(&request, &count);
    assert_true(harness_start(&h, harness_backend, NULL));
    shuf *handle = client_open_at(&h);
    shuf_lease *leases[4] = {NULL};
    for (int i = 0; i < transport_count(); i++)
        take(handle, &request, transports[i], &leases[i]);
    assert_int_equal(harness_kill(&h, signal), signal == SIGKILL ? SIGKILL : 0);
    for (int i = 0; i < transport_count(); i++)
        check_lease(handle, leases[i], values, count);
    assert_true(harness_restart(&h));
    for (int i = 0; i < transport_count(); i++) /* the leases belong to the old daemon */
        assert_int_equal(shuf_lease_release(handle, &leases[i]), SHUF_OK);
    shuf_lease *lease = NULL;
    take(handle, &request, SHUF_MEMFD, &lease);
    check_lease(handle, lease, values, count);
    free(values);
    shuf_close(handle);
    assert_true(harness_stop(&h));
}

static void lease_outlives_killed_daemon(void **state)
{
    (void)state;
    check_lease_outlives_daemon(SIGKILL);
}

static void lease_outlives_ended_daemon(void **state)
{
    (void)state;
    check_lease_outlives_daemon(SIGTERM);
}

static void forked_child_reads(void **state)
{
    (void)state;
    int status = -1;
    uint64_t count;
    const shuf_request request = {.permutation = {.n = 300000, .seed = 6}};
    uint64_t *values = expected_values(&request, &count);
    shuf *handle = client_open();
    shuf_lease *lease = NULL;
    take(handle, &request, SHUF_MEMFD, &lease);
    pid_t child = fork();
    if (child == 0)
        _exit(expected_equal(values, lease->data, lease->result.shape.width, count) ? 0 : 1);
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    free(values);
    shuf_close(handle);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_table_matches),
        cmocka_unit_test(random_leases_match_reference),
        cmocka_unit_test(prefetched_result_is_taken),
        cmocka_unit_test(thousand_leases_leak_no_descriptors),
        cmocka_unit_test(lease_limit_is_refused_then_served),
        cmocka_unit_test(lease_with_event_is_awaited),
        cmocka_unit_test(leases_survive_fork),
        cmocka_unit_test(leases_outlive_killed_daemons),
        cmocka_unit_test(golden_table_matches_in_exchange),
        cmocka_unit_test(random_views_and_types_match),
        cmocka_unit_test(large_n_matches),
        cmocka_unit_test(transport_with_least_copying_is_chosen),
        cmocka_unit_test(missing_transports_are_refused),
        cmocka_unit_test(idle_mappings_are_freed_for_results),
        cmocka_unit_test(ipc_leases_with_events_are_awaited),
        cmocka_unit_test(lease_outlives_killed_daemon),
        cmocka_unit_test(lease_outlives_ended_daemon),
        cmocka_unit_test(forked_child_reads),
    };
    harness_backend = harness_backend_or_skip(argc, argv);
    return cmocka_run_group_tests(tests, harness_start_shared, harness_stop_shared);
}
