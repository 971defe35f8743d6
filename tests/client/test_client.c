/* SPDX-License-Identifier: MIT
 *
 * libshuf with a real daemon, on the backend of the command line: every view and type with all its
 * values, failures from outside, and many clients at the same time.
 */
#include "support/client.h"
#include "support/cmocka_all.h"
#include "support/expected.h"
#include "support/golden.h"
#include "support/random.h"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static shuf_request random_request(uint64_t n_limit)
{
    static const char *const algorithms[] = {NULL, "primefold", "philox24", "lcg"};
    shuf_request request = {.permutation = {
                                .algorithm = algorithms[random_below(4)],
                                .n = random_size(n_limit),
                                .seed = random_u64(),
                                .epoch = random_u64(),
                                .epochs = random_below(4),
                                .dtype = (shuf_dtype)random_below(4),
                            }};
    expected_random_view(&request);
    return request;
}

static void missing_daemon_is_an_error(void **state)
{
    (void)state;
    shuf *handle;
    shuf_status status = shuf_connect(&handle, "/nonexistent/shufd.sock");
    client_expect(handle, status, SHUF_NO_DAEMON,
                  "socket /nonexistent/shufd.sock: no daemon answers (No such file or directory); "
                  "start a daemon with shufd(8)");
    assert_string_equal(shuf_socket(handle), "/nonexistent/shufd.sock");
    shuf_close(handle);
    shuf_close(NULL);
}

static void long_socket_path_is_refused(void **state)
{
    (void)state;
    char path[200];
    shuf *handle;
    shuf_daemon daemon;
    memset(path, 'x', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    shuf_status status = shuf_connect(&handle, path);
    client_expect(handle, status, SHUF_INVALID, "expected at most 107");
    client_expect(handle, shuf_daemon_status(handle, &daemon), SHUF_INVALID, "socket");
    shuf_close(handle);
}

/* A program may run with closed standard streams. The connection does not take their descriptor
 * numbers, so no output of the program goes to the daemon. */
static void connection_takes_no_closed_standard_stream(void **state)
{
    (void)state;
    int status;
    pid_t child = fork();
    if (child == 0) {
        shuf *handle;
        close(STDIN_FILENO);
        close(STDOUT_FILENO);
        if (shuf_connect(&handle, harness_shared.socket) != SHUF_OK)
            _exit(1);
        _exit(fcntl(STDIN_FILENO, F_GETFD) < 0 && fcntl(STDOUT_FILENO, F_GETFD) < 0 ? 0 : 2);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* Connects as another user without a group, in a child. */
static void expect_failure_of(uid_t uid, const char *socket, shuf_status expected,
                              const char *words)
{
    pid_t child = fork();
    if (child == 0) {
        shuf *handle;
        if (setgroups(0, NULL) != 0 || setuid(uid) != 0)
            _exit(1);
        const shuf_status got = shuf_connect(&handle, socket);
        _exit(got == expected && strstr(shuf_message(handle), words) ? 0 : 2);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void expect_failure(const char *socket, shuf_status expected, const char *words)
{
    expect_failure_of(65534, socket, expected, words);
}

static void expect_denied(const char *words)
{
    expect_failure(harness_shared.socket, SHUF_DENIED, words);
}

/* The user may not write to this file, so connect() fails as with a closed socket. */
static void closed_file_is_no_socket(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    expect_failure("/etc/passwd", SHUF_NO_DAEMON,
                   "socket /etc/passwd: another kind of file, expected the socket of a daemon");
}

/* Only the owner may access the harness's directory. */
static void closed_socket_is_an_error(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    char closed[256];
    snprintf(closed, sizeof closed, "uid 65534 may not search %s, which is root:root's, mode 0700;",
             harness_shared.directory);
    expect_denied(closed);
    assert_int_equal(chmod(harness_shared.directory, 0711), 0);
    assert_int_equal(chmod(harness_shared.socket, 0600), 0);
    expect_denied(
        "for uid 65534; it is root:root's, mode 0600; socket_group and socket_mode of the "
        "daemon decide, or SocketGroup= and SocketMode= of its socket unit");
    assert_int_equal(chown(harness_shared.socket, (uid_t)-1, 1), 0); /* daemon, on Debian */
    expect_denied("it is root:daemon's, mode 0600; socket_group and");
    assert_int_equal(chmod(harness_shared.socket, 0660), 0);
    expect_denied("its group may use it: usermod --append --groups daemon nobody, as root, then");
    expect_failure_of(1, harness_shared.socket, SHUF_DENIED, /* of the group in the database */
                      "its group may use it: daemon is a member of daemon, but not since this "
                      "login: log in again, or run newgrp daemon");
    assert_int_equal(chown(harness_shared.socket, (uid_t)-1, 54321), 0); /* outside a container */
    expect_denied("its group may use it: run the container with --group-add 54321, or with "
                  "supplementalGroups: [54321] in its pod");
    assert_int_equal(chown(harness_shared.socket, (uid_t)-1, 0), 0);
    assert_int_equal(chmod(harness_shared.directory, 0700), 0);
}

static void *permit_later(void *unused)
{
    (void)unused;
    nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    chmod(harness_shared.socket, 0666);
    return NULL;
}

/* A service manager makes the socket, and gives it to its group a moment later. */
static void new_socket_is_permitted_soon(void **state)
{
    (void)state;
    pthread_t thread;
    if (geteuid() != 0)
        skip();
    assert_int_equal(chmod(harness_shared.directory, 0711), 0);
    assert_int_equal(chmod(harness_shared.socket, 0600), 0);
    assert_int_equal(pthread_create(&thread, NULL, permit_later, NULL), 0);
    expect_failure_of(65534, harness_shared.socket, SHUF_OK, "");
    pthread_join(thread, NULL);
    assert_int_equal(chmod(harness_shared.socket, 0600), 0);
    assert_int_equal(chmod(harness_shared.directory, 0700), 0);
}

static _Atomic bool keeps_changing;

static void *change_again(void *unused)
{
    (void)unused;
    while (keeps_changing) {
        chmod(harness_shared.socket, 0600);
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    }
    return NULL;
}

/* A socket that changes all the time stays new, but nobody waits for it longer than for another. */
static void wait_for_permission_ends(void **state)
{
    (void)state;
    pthread_t thread;
    if (geteuid() != 0)
        skip();
    keeps_changing = true;
    assert_int_equal(chmod(harness_shared.directory, 0711), 0);
    assert_int_equal(pthread_create(&thread, NULL, change_again, NULL), 0);
    const time_t begin = time(NULL);
    expect_denied("for uid 65534; it is root:root's, mode 0600");
    assert_in_range(time(NULL) - begin, 1, 10);
    keeps_changing = false;
    pthread_join(thread, NULL);
    assert_int_equal(chmod(harness_shared.directory, 0700), 0);
}

static void random_requests_match_reference(void **state)
{
    (void)state;
    shuf *handle = client_open();
    random_start("random_requests_match_reference");
    for (int i = 0; i < 300; i++) {
        shuf_request request = random_request(5000);
        assert_true(client_check(handle, &request));
    }
    shuf_close(handle);
}

/* Compares a row of the golden table with the values of a reply of the requested type. */
static void check_golden(shuf *handle, const struct golden *row, shuf_dtype dtype)
{
    shuf_request request = {.permutation = {.algorithm = row->algorithm,
                                            .n = row->n,
                                            .seed = row->seed,
                                            .epoch = row->epoch,
                                            .dtype = dtype,
                                            .fingerprint = true}};
    unsigned width = dtype == SHUF_U32 ? 4 : 8;
    shuf_result result;
    void *out = malloc(row->n * width);
    uint64_t *values = malloc(row->n * sizeof *values);
    assert_int_equal(shuf_copy(handle, &request, out, row->n * width, &result), SHUF_OK);
    for (uint64_t i = 0; i < row->n; i++)
        values[i] = expected_read(out, width, i);
    for (unsigned i = 0; i < row->count; i++)
        assert_int_equal(values[golden_position(row, i)], row->values[i]);
    assert_int_equal(golden_fingerprint(values, row->n), row->fingerprint);
    assert_int_equal(result.fingerprint, row->fingerprint);
    free(values);
    free(out);
}

/* Every row of the golden table through the library, as one of the types. Its values were computed
 * from the specification alone. */
static void golden_table_matches(void **state)
{
    (void)state;
    static const shuf_dtype dtypes[] = {SHUF_U32, SHUF_U64, SHUF_I64};
    struct golden row;
    int rows = 0;
    shuf *handle = client_open();
    FILE *table = golden_open("permute.txt");
    for (; golden_next(table, &row); rows++)
        if (rows % GOLDEN_STEP == 0)
            check_golden(handle, &row, dtypes[rows / GOLDEN_STEP % 3]);
    assert_true(rows > 0);
    fclose(table);
    shuf_close(handle);
}

static void shard_of_more_ranks_than_values(void **state)
{
    (void)state;
    shuf *handle = client_open();
    shuf_request request = {
        .permutation = {.n = 3, .view = SHUF_VIEW_SHARD, .rank = 6, .world = 7}};
    assert_true(client_check(handle, &request));
    request.permutation.drop_last = true;
    assert_true(client_check(handle, &request));
    assert_int_equal(shuf_copy(handle, &request, NULL, 0, NULL), SHUF_OK);
    shuf_close(handle);
}

static void result_describes_reply(void **state)
{
    (void)state;
    shuf *handle = client_open();
    shuf_request request = {
        .permutation = {.n = 100003, .seed = 7, .epoch = 1, .epochs = 2, .dtype = SHUF_I64}};
    shuf_result result;
    uint64_t count, *values = expected_values(&request, &count);
    assert_int_equal(shuf_summarize(handle, &request, &result), SHUF_OK);
    assert_string_equal(shuf_message(handle), "");
    assert_string_equal(result.algorithm, "primefold");
    assert_string_equal(result.backend, harness_backend);
    assert_true(result.device[0] != '\0' && result.device_ns > 0);
    assert_int_equal(result.shape.bytes, count * 8);
    assert_int_equal(result.fingerprint, golden_fingerprint(values, count));
    uint64_t *sent = malloc(result.shape.bytes);
    request.permutation.fingerprint = true;
    assert_int_equal(shuf_copy(handle, &request, sent, result.shape.bytes, &result), SHUF_OK);
    assert_int_equal(result.fingerprint, golden_fingerprint(values, count));
    free(sent);
    assert_true(result.n_first == SHUF_SAMPLES && result.n_last == SHUF_SAMPLES);
    assert_memory_equal(result.first, values, sizeof result.first);
    assert_memory_equal(result.last, values + count - SHUF_SAMPLES, sizeof result.last);
    free(values);
    shuf_close(handle);
}

static void first_and_last_values_never_overlap(void **state)
{
    (void)state;
    shuf *handle = client_open();
    for (uint64_t n = 1; n <= 10; n++) {
        shuf_request request = {.permutation = {.n = n, .seed = n}};
        shuf_result result;
        uint64_t *values = expected_values(&request, NULL);
        assert_int_equal(shuf_summarize(handle, &request, &result), SHUF_OK);
        assert_true(result.n_first + result.n_last <= n);
        assert_true(result.n_first + result.n_last ==
                    (n < 2 * SHUF_SAMPLES ? n : 2 * SHUF_SAMPLES));
        assert_memory_equal(result.first, values, result.n_first * sizeof *values);
        assert_memory_equal(result.last, values + n - result.n_last,
                            result.n_last * sizeof *values);
        free(values);
    }
    shuf_close(handle);
}

/* A stride of 0 has its default, as other fields. A count of 0 has none. */
static void slice_without_stride_has_each_value(void **state)
{
    (void)state;
    shuf *handle = client_open();
    uint32_t all[100], part[30];
    shuf_request whole = {.permutation = {.n = 100, .seed = 7}};
    shuf_request slice = {
        .permutation = {.n = 100, .seed = 7, .view = SHUF_VIEW_SLICE, .offset = 20, .count = 30}};
    client_expect(handle, shuf_copy(handle, &whole, all, sizeof all, NULL), SHUF_OK, "");
    client_expect(handle, shuf_copy(handle, &slice, part, sizeof part, NULL), SHUF_OK, "");
    assert_memory_equal(part, all + 20, sizeof part);
    slice.permutation.count = 0;
    client_expect(handle, shuf_copy(handle, &slice, part, sizeof part, NULL), SHUF_INVALID,
                  "count 0: expected at least 1");
    shuf_close(handle);
}

/* The message names the type of the values, and whether the caller or the default chose it. */
static void refused_size_names_the_type(void **state)
{
    (void)state;
    shuf *handle = client_open();
    uint64_t out[10];
    shuf_request request = {.permutation = {.n = 10}};
    client_expect(handle, shuf_copy(handle, &request, out, 39, NULL), SHUF_INVALID,
                  "bytes 39: expected at least 40 for 10 values of 4 bytes (u32, dtype auto)");
    request.permutation.dtype = SHUF_I64;
    client_expect(handle, shuf_copy(handle, &request, out, 79, NULL), SHUF_INVALID,
                  "bytes 79: expected at least 80 for 10 values of 8 bytes (i64)");
    request = (shuf_request){
        .permutation = {.n = UINT64_C(1) << 40, .view = SHUF_VIEW_SLICE, .count = 10}};
    client_expect(handle, shuf_copy(handle, &request, out, 40, NULL), SHUF_INVALID,
                  "bytes 40: expected at least 80 for 10 values of 8 bytes (u64, dtype auto)");
    shuf_close(handle);
}

/* libshuf refuses these requests with the messages that the daemon would send; the handle still
 * works. */
static void wrong_parameters_are_refused(void **state)
{
    (void)state;
    shuf *handle = client_open();
    uint32_t out[10];
    char message[256];
    shuf_request no_slice = {.permutation = {.n = 10, .count = 3}},
                 no_shard = {.permutation = {.n = 10, .drop_last = true}};
    shuf_request no_step = {.permutation = {.n = 10, .step = 1}};
    shuf_request mixed = {
        .permutation = {.n = 10, .view = SHUF_VIEW_SHARD, .world = 2, .stride = 1}};
    shuf_shape shape;
    shuf_request none = {.permutation = {0}},
                 unknown = {.permutation = {.n = 10, .algorithm = "sattolo"}};
    shuf_request narrow = {.permutation = {.n = (UINT64_C(1) << 32) + 1, .dtype = SHUF_U32}};
    shuf_request unknown_view = {.permutation = {.n = 10, .view = (shuf_view)7}};
    shuf_request huge = {.permutation = {.n = UINT64_C(1) << 62, .epochs = 4}};
    shuf_request whole = {.permutation = {.n = 10}};
    client_expect(handle, shuf_copy(handle, &none, out, sizeof out, NULL), SHUF_INVALID, "n 0");
    client_expect(handle, shuf_copy(handle, &narrow, out, sizeof out, NULL), SHUF_INVALID,
                  "dtype u32");
    client_expect(handle, shuf_copy(handle, &unknown_view, out, sizeof out, NULL), SHUF_INVALID,
                  "view 7");
    client_expect(handle, shuf_copy(handle, &no_slice, out, sizeof out, NULL), SHUF_INVALID,
                  "count 3");
    client_expect(handle, shuf_copy(handle, &no_shard, out, sizeof out, NULL), SHUF_INVALID,
                  "drop_last 1: expected 0 without view SHARD");
    client_expect(handle, shuf_copy(handle, &no_step, out, sizeof out, NULL), SHUF_INVALID,
                  "step 1: expected 0 without view SHARD");
    client_expect(handle, shuf_copy(handle, &mixed, out, sizeof out, NULL), SHUF_INVALID,
                  "stride 1: expected 0 without view SLICE");
    client_expect(handle, shuf_copy(handle, &huge, out, sizeof out, NULL), SHUF_NO_MEMORY,
                  "pass 2^63");
    client_expect(handle, shuf_copy(handle, &whole, out, 39, NULL), SHUF_INVALID, "bytes 39");
    client_expect(handle, shuf_copy(handle, &whole, NULL, 40, NULL), SHUF_INVALID, "out NULL");
    client_expect(handle, shuf_copy(handle, &unknown, out, sizeof out, NULL), SHUF_INVALID,
                  "sattolo");
    assert_int_equal(shuf_shape_of(&none, &shape, message, sizeof message), SHUF_INVALID);
    assert_string_equal(message, "n 0: expected 1 to 2^62 (4611686018427387904)");
    assert_true(client_check(handle, &whole));
    shuf_close(handle);
}

/* libshuf refuses a name that exceeds a frame before it sends anything. */
static void long_algorithm_name_is_refused(void **state)
{
    (void)state;
    shuf *handle = client_open();
    char *name = malloc(100001);
    memset(name, 'a', 100000);
    name[100000] = '\0';
    shuf_request request = {.permutation = {.n = 10, .algorithm = name}},
                 whole = {.permutation = {.n = 10}};
    client_expect(handle, shuf_summarize(handle, &request, &(shuf_result){0}), SHUF_INVALID,
                  "aaa\": expected primefold, philox24 or lcg");
    free(name);
    assert_true(client_check(handle, &whole));
    shuf_close(handle);
}

/* A lease needs memory for the whole result. The daemon refuses a result above its limit, and the
 * handle still works. */
static void result_above_limit_is_refused(void **state)
{
    (void)state;
    shuf *handle = client_open();
    shuf_request request = {.permutation = {.n = UINT64_C(1) << 45}},
                 whole = {.permutation = {.n = 10}};
    shuf_lease *lease = NULL;
    assert_int_equal(shuf_lease_take(handle, &request, NULL, &lease), SHUF_NO_MEMORY);
    assert_true(shuf_message(handle)[0] != '\0');
    assert_true(client_check(handle, &whole));
    shuf_close(handle);
}

static void daemon_status_counts_requests(void **state)
{
    (void)state;
    shuf *handle = client_open(), *other = client_open();
    shuf_daemon before, after;
    assert_int_equal(shuf_daemon_status(handle, &before), SHUF_OK);
    assert_int_equal(before.pid, harness_shared.pid);
    assert_int_equal(before.clients, 2);
    assert_string_equal(before.backend, harness_backend);
    assert_true(strncmp(before.version, "shufd ", 6) == 0);
    assert_true(before.device[0] && before.device_id[0]);
    assert_true(before.queue_limit > 0 && before.memory_limit > 0);
    assert_int_equal(
        shuf_summarize(handle, &(shuf_request){.permutation = {.n = 10}}, &(shuf_result){0}),
        SHUF_OK);
    assert_int_equal(shuf_daemon_status(handle, &after), SHUF_OK);
    assert_int_equal(after.served, before.served + 1);
    shuf_close(other);
    shuf_close(handle);
}

enum { PROCESSES = 4, THREADS = 25, HERE = 100, CLIENTS = PROCESSES * THREADS + HERE };

/* A barrier for the clients of all processes: each client writes a byte to `ready` when it is
 * connected, and then waits until `go` is closed. */
static struct {
    int ready[2], go[2];
} barrier;

struct client {
    pthread_t thread;
    shuf_request request[3];
    bool right;
};

static void *run_client(void *argument)
{
    struct client *c = argument;
    shuf *handle;
    char byte;
    c->right = shuf_connect(&handle, harness_shared.socket) == SHUF_OK;
    if (!c->right)
        fprintf(stderr, "%s\n", shuf_message(handle));
    c->right &= write(barrier.ready[1], "", 1) == 1 && read(barrier.go[0], &byte, 1) == 0;
    for (int i = 0; i < 3 && c->right; i++)
        c->right = client_check(handle, &c->request[i]);
    shuf_close(handle);
    return NULL;
}

static void start_clients(struct client *clients, int threads)
{
    for (int i = 0; i < threads; i++) {
        for (int k = 0; k < 3; k++)
            clients[i].request[k] = random_request(20000);
        if (pthread_create(&clients[i].thread, NULL, run_client, &clients[i]) != 0)
            abort();
    }
}

static bool join_clients(struct client *clients, int threads)
{
    bool right = true;
    for (int i = 0; i < threads; i++) {
        pthread_join(clients[i].thread, NULL);
        right = right && clients[i].right;
    }
    return right;
}

static pid_t fork_clients(struct client *clients)
{
    pid_t child = fork();
    if (child != 0)
        return child;
    close(barrier.go[1]); /* otherwise `go` would never be closed */
    start_clients(clients, THREADS);
    _exit(join_clients(clients, THREADS) ? 0 : 1);
}

/* Returns the number of clients that the daemon reports when all have reached the barrier. */
static uint64_t count_waiting_clients(void)
{
    struct pollfd ready = {.fd = barrier.ready[0], .events = POLLIN};
    shuf_daemon status = {0};
    shuf *handle;
    char byte;
    int ready_count = 0;
    while (ready_count < CLIENTS && poll(&ready, 1, HARNESS_WAIT_MS) == 1 &&
           read(barrier.ready[0], &byte, 1) == 1)
        ready_count++;
    if (ready_count < CLIENTS)
        fprintf(stderr, "%d of %d clients came\n", ready_count, CLIENTS);
    if (shuf_connect(&handle, harness_shared.socket) == SHUF_OK)
        shuf_daemon_status(handle, &status);
    shuf_close(handle);
    return status.clients;
}

/* 200 connections at the same time, from threads and processes, all with different requests. */
static void clients_at_the_same_time(void **state)
{
    (void)state;
    static struct client clients[HERE];
    pid_t children[PROCESSES];
    int status;
    assert_int_equal(pipe2(barrier.ready, O_CLOEXEC), 0);
    assert_int_equal(pipe2(barrier.go, O_CLOEXEC), 0);
    random_start("clients_at_the_same_time");
    for (int i = 0; i < PROCESSES; i++) {
        for (uint64_t skip_draws = random_below(1000); skip_draws > 0; skip_draws--)
            random_u64();
        children[i] = fork_clients(clients);
    }
    start_clients(clients, HERE);
    uint64_t at_once = count_waiting_clients();
    close(barrier.go[1]);
    bool right = join_clients(clients, HERE);
    for (int i = 0; i < PROCESSES; i++) {
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_int_equal(status, 0);
    }
    assert_true(right);
    assert_true(at_once > CLIENTS); /* the clients, and the connection of this status request */
    close(barrier.go[0]);
    close(barrier.ready[0]);
    close(barrier.ready[1]);
}

int main(int argc, char **argv)
{
    harness_backend = harness_backend_or_skip(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(missing_daemon_is_an_error),
        cmocka_unit_test(long_socket_path_is_refused),
        cmocka_unit_test(connection_takes_no_closed_standard_stream),
        cmocka_unit_test(closed_socket_is_an_error),
        cmocka_unit_test(new_socket_is_permitted_soon),
        cmocka_unit_test(wait_for_permission_ends),
        cmocka_unit_test(closed_file_is_no_socket),
        cmocka_unit_test(random_requests_match_reference),
        cmocka_unit_test(golden_table_matches),
        cmocka_unit_test(shard_of_more_ranks_than_values),
        cmocka_unit_test(result_describes_reply),
        cmocka_unit_test(first_and_last_values_never_overlap),
        cmocka_unit_test(slice_without_stride_has_each_value),
        cmocka_unit_test(refused_size_names_the_type),
        cmocka_unit_test(wrong_parameters_are_refused),
        cmocka_unit_test(long_algorithm_name_is_refused),
        cmocka_unit_test(result_above_limit_is_refused),
        cmocka_unit_test(daemon_status_counts_requests),
        cmocka_unit_test(clients_at_the_same_time),
    };
    return cmocka_run_group_tests(tests, harness_start_shared, harness_stop_shared);
}
