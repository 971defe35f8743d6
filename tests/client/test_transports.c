/* SPDX-License-Identifier: MIT
 *
 * Leases by libshuf, with every transport of the backend: the golden table, and every view and type
 * with all values. The values stay valid after the end of the daemon.
 */
#include "shuf.h"
#include "support/cmocka_all.h"
#include "support/expected.h"
#include "support/golden.h"
#include "support/random.h"
#include "support/wire.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *backend;
static struct harness shared;

static int start_shared(void **state)
{
    (void)state;
    return harness_start(&shared, backend, NULL) ? 0 : -1;
}

static int stop_shared(void **state)
{
    (void)state;
    return harness_stop(&shared) ? 0 : -1;
}

static shuf *open_handle(const struct harness *h)
{
    shuf *handle;
    if (shuf_connect(&handle, h->socket) != SHUF_OK)
        fail_msg("%s", shuf_message(handle));
    return handle;
}

/* The transports of the backend come first. */
static const shuf_transport transports[] = {SHUF_INLINE, SHUF_MEMFD, SHUF_CUDA_FD, SHUF_CUDA_IPC};

static int transport_count(void)
{
    return strncmp(backend, "cuda", 4) == 0 ? 4 : 2;
}

static bool is_host(shuf_transport transport)
{
    return transport == SHUF_INLINE || transport == SHUF_MEMFD;
}

static void take(shuf *handle, const shuf_request *request, shuf_transport transport,
                 shuf_lease **lease)
{
    const shuf_lease_options options = {.transports = transport};
    if (shuf_lease_take(handle, request, &options, lease) != SHUF_OK)
        fail_msg("%s: %s", shuf_transport_name(transport), shuf_message(handle));
    assert_int_equal((*lease)->transport, transport);
    assert_int_equal((*lease)->device_id[0] == '\0', is_host(transport));
    assert_int_equal((*lease)->id == 0, transport == SHUF_INLINE);
}

static uint64_t read_value(shuf *handle, const shuf_lease *lease, uint64_t index)
{
    uint64_t value = 0;
    unsigned width = lease->result.shape.width;
    assert_int_equal(shuf_lease_read(handle, lease, index * width, width, &value), SHUF_OK);
    if (lease->device_id[0] == '\0')
        assert_int_equal(expected_read(lease->data, width, index), value);
    return value; /* the value is in the low bytes */
}

/* ---- values ------------------------------------------------------------------- */

static void check_row(shuf *handle, const struct golden *row, const shuf_lease *lease)
{
    assert_int_equal(lease->result.fingerprint, row->fingerprint);
    assert_int_equal(lease->result.shape.count, row->n);
    for (unsigned i = 0; i < row->count; i++)
        assert_int_equal(read_value(handle, lease, golden_position(row, i)), row->values[i]);
}

/* Exchanges each lease for the next one in one round trip, like a training loop. */
static void golden_table_matches(void **state)
{
    (void)state;
    int rows = 0;
    struct golden row;
    shuf *handle = open_handle(&shared);
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

static shuf_request random_request(void)
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
    shuf *handle = open_handle(&shared);
    shuf_lease *lease = NULL;
    random_start("random_views_and_types_match");
    for (int i = 0; i < 60; i++) {
        uint64_t count;
        const shuf_request request = random_request();
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
    shuf *handle = open_handle(&shared);
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

/* ---- the choice --------------------------------------------------------------- */

static void transport_with_least_copying_is_chosen(void **state)
{
    (void)state;
    const shuf_request request = {.permutation = {.n = 1000, .seed = 1}};
    shuf_lease_options all = {.transports = 0};
    shuf *handle = open_handle(&shared);
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
    shuf *handle = open_handle(&shared);
    for (int i = transport_count(); i < 4; i++) {
        char text[96];
        shuf_lease *lease = NULL;
        const shuf_lease_options options = {.transports = transports[i]};
        snprintf(text, sizeof text, "transport %s: the backend %s has only memfd, inline",
                 shuf_transport_name(transports[i]), backend);
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
    wire_start(&h, backend, "host_memory = 8Mi\ndevice_memory = 8Mi\n");
    shuf *handle = open_handle(&h);
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

static void lease_with_event_is_awaited(void **state)
{
    (void)state;
    if (transport_count() < 4)
        skip();
    const shuf_lease_options options = {.transports = SHUF_CUDA_IPC, .event = true};
    shuf *handle = open_handle(&shared);
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

/* ---- ends --------------------------------------------------------------------- */

static void check_lease_outlives_daemon(int signal)
{
    struct harness h;
    uint64_t count;
    const shuf_request request = {.permutation = {.n = 300000, .seed = 5}};
    uint64_t *values = expected_values(&request, &count);
    assert_true(harness_start(&h, backend, NULL));
    shuf *handle = open_handle(&h);
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
    shuf *handle = open_handle(&shared);
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
        cmocka_unit_test(random_views_and_types_match),
        cmocka_unit_test(large_n_matches),
        cmocka_unit_test(transport_with_least_copying_is_chosen),
        cmocka_unit_test(missing_transports_are_refused),
        cmocka_unit_test(idle_mappings_are_freed_for_results),
        cmocka_unit_test(lease_with_event_is_awaited),
        cmocka_unit_test(lease_outlives_killed_daemon),
        cmocka_unit_test(lease_outlives_ended_daemon),
        cmocka_unit_test(forked_child_reads),
    };
    backend = harness_backend_or_skip(argc, argv);
    return cmocka_run_group_tests(tests, start_shared, stop_shared);
}
