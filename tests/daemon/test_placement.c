/* SPDX-License-Identifier: MIT
 *
 * A daemon with a simulated GPU computes results for the host with the host's processors where the
 * model expects that to be sooner (daemon/engine/engines.h). The fake backend counts the launches
 * of the GPU, and a job that never ends keeps the GPU busy.
 */
#include "simd/simd_ops.h"
#include "support/cmocka_all.h"
#include "support/fake_backend.h"
#include "support/wire.h"

#include "shuf/primefold.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MEMFD SHUF__TRANSPORT__TRANSPORT_MEMFD
#define COPY SHUF__TRANSPORT__TRANSPORT_INLINE
#define NONE SHUF__TRANSPORT__TRANSPORT_NONE
#define DEVICE SHUF__TRANSPORT__TRANSPORT_CUDA_IPC
#define ANY_USER SHUF__TRANSPORT__TRANSPORT_CUDA_FD

static struct harness h;
static struct wire *w;

static void start_gpu(const char *const *settings)
{
    faults->is_gpu = true;
    fake_backend_start(&h, settings);
    w = wire_greet(&h);
}

/* `results` is the value of host_results. */
static void start(const char *threads, const char *results)
{
    const char *const settings[] = {"threads", threads, "host_results", results, NULL};
    start_gpu(settings);
}

static void stop(void)
{
    wire_close(w);
    assert_true(harness_stop(&h));
}

/* Requests the permutation of n and checks who has computed it, and its values. */
static void expect_place(uint64_t n, Shuf__Transport transport, const char *backend)
{
    const unsigned before = seen->launches;
    struct shuf__result_message permute = wire_permutation(n, transport);
    wire_send_result(w, &permute);
    const Shuf__ResultReply *reply = wire_expect(w, SHUF_OK, "")->result;
    assert_string_equal(reply->backend, backend);
    assert_int_equal(seen->launches - before, strcmp(backend, "fake") == 0);
    if (transport == MEMFD) {
        const shuf_primefold f = shuf_primefold_make(n, 7, 0);
        const uint64_t bytes = reply->block_bytes;
        const uint32_t *values = wire_map(w, bytes);
        for (uint64_t i = 0; i < n; i++)
            assert_int_equal(values[i], shuf_primefold_forward(&f, i));
        wire_unmap(values, bytes);
    } else if (transport == COPY) {
        wire_read_permutation(w, n * sizeof(uint32_t), n);
    }
}

static void small_results_are_computed_by_the_host(void **state)
{
    (void)state;
    start("1", "auto");
    expect_place(1000, MEMFD, "cpu");
    expect_place(1001, COPY, "cpu");
    expect_place(1002, NONE, "cpu");
    expect_place(1003, DEVICE, "fake");
    const Shuf__StatusReply s = wire_status(&h);
    assert_int_equal(s.computed, 4);
    assert_int_equal(s.computed_on_host, 3);
    stop();
}

/* One thread takes longer for a million values than a GPU with the copy of them. */
static void large_results_of_one_thread_are_computed_by_the_gpu(void **state)
{
    (void)state;
    start("1", "auto");
    expect_place(1000000, MEMFD, "fake");
    expect_place(1000001, COPY, "fake");
    expect_place(1000002, NONE, "fake");
    stop();
}

static void host_results_decides(void **state)
{
    (void)state;
    static const struct {
        const char *results, *backend;
    } rows[] = {{"host", "cpu"}, {"device", "fake"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        start("1", rows[i].results);
        expect_place(1000, MEMFD, rows[i].backend);
        expect_place(1000000, MEMFD, rows[i].backend);
        expect_place(1000001, COPY, rows[i].backend);
        expect_place(1000002, DEVICE, "fake");
        stop();
    }
}

/* Whoever has computed a result in host memory, an equal request finds it. */
static void host_finds_results_of_the_gpu(void **state)
{
    (void)state;
    start("1", "auto");
    expect_place(1000000, MEMFD, "fake");
    struct shuf__result_message summary = wire_permutation(1000000, NONE);
    summary.delivery.fingerprint = true;
    wire_send_result(w, &summary);
    assert_true(wire_expect(w, SHUF_OK, "")->result->shared);
    assert_int_equal(seen->launches, 1);
    stop();
}

/* ---- A GPU without memory ---- */

/* A GPU that computes a result for host memory needs a workspace of its own memory. Either other
 * programs have taken that memory, or the daemon may not use it. */
static void host_computes_what_has_no_room_in_the_gpu(void **state)
{
    enum { GPU = 1 << 30, SPACE = 8 << 20 };
    static const struct {
        const char *limit;
        uint64_t others;
        const char *backend;
    } rows[] = {{"50%", 0, "fake"}, {"50%", GPU, "cpu"}, {"4Mi", 0, "cpu"}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *const settings[] = {"threads", "1", "device_memory", rows[i].limit, NULL};
        faults->device = GPU;
        faults->other_programs = rows[i].others;
        faults->workspace_best = faults->workspace_least = SPACE;
        faults->workspace_on_device = true;
        start_gpu(settings);
        expect_place(1000000, MEMFD, rows[i].backend);
        expect_place(1000001, COPY, rows[i].backend);
        expect_place(1000002, NONE, rows[i].backend);
        stop();
    }
}

/* ---- What the host answers while the GPU is busy ---- */

/* Begins a job that never ends, beside `jobs` others. The first one has the user's turn. */
static struct wire *keep_gpu_busy_as(uid_t user, unsigned jobs)
{
    struct wire *busy = wire_greet_as(&h, user);
    struct shuf__result_message endless =
        wire_permutation(WAITING_N, user == geteuid() ? DEVICE : ANY_USER);
    const unsigned launches = seen->launches + (jobs == 0);
    endless.permutation.seed = jobs;
    wire_send_result(busy, &endless);
    wire_await_queued(&h, jobs + 1);
    for (unsigned waited = 0; seen->launches < launches;)
        wire_wait(&waited, "the GPU computes");
    return busy;
}

static struct wire *keep_gpu_busy(unsigned jobs)
{
    return keep_gpu_busy_as(geteuid(), jobs);
}

static void look_up(uint64_t n, unsigned count)
{
    enum { MOST = 5000 };
    static uint64_t at[MOST];
    Shuf__Request request = SHUF__REQUEST__INIT;
    Shuf__Index index = SHUF__INDEX__INIT;
    Shuf__Permutation permutation = SHUF__PERMUTATION__INIT;
    request.body_case = SHUF__REQUEST__BODY_INDEX;
    request.index = &index;
    index.permutation = &permutation;
    permutation.n = n;
    permutation.seed = 7;
    permutation.algorithm = (char *)"philox24";
    for (unsigned i = 0; i < count; i++)
        at[i] = i;
    index.at = at;
    index.n_at = count;
    wire_send(w, &request);
    assert_int_equal(wire_expect(w, SHUF_OK, "")->index->n_value, count);
}

static void shuffle_buffer(void)
{
    const Shuf__ResultReply buffer = wire_allocate(w, 1 << 22, MEMFD);
    struct shuf__result_message shuffle = wire_shuffle_of(buffer.lease, 1 << 20, 4, MEMFD);
    wire_send_result(w, &shuffle);
    assert_string_equal(wire_expect(w, SHUF_OK, "")->result->backend, "cpu");
}

static void write_to_buffer(void)
{
    static const uint8_t data[100];
    const Shuf__ResultReply buffer = wire_allocate(w, 1 << 22, MEMFD);
    wire_send_write(w, buffer.lease, 0, data, sizeof data);
    wire_expect(w, SHUF_OK, "");
}

static void draw(void)
{
    struct shuf__result_message stream = wire_result(SHUF__RESULT__WHAT_STREAM, MEMFD);
    stream.stream.distribution = SHUF__DISTRIBUTION__DISTRIBUTION_UNIFORM;
    stream.stream.count = 1000000;
    wire_send_result(w, &stream);
    assert_string_equal(wire_expect(w, SHUF_OK, "")->result->backend, "cpu");
}

/* All these are jobs, and would wait for the user's job in the GPU. */
static void host_does_not_wait_for_the_gpu(void **state)
{
    (void)state;
    start("1", "host");
    struct wire *busy = keep_gpu_busy(0);
    expect_place(1000, MEMFD, "cpu");
    expect_place(1000000, MEMFD, "cpu");
    expect_place(1000001, COPY, "cpu");
    look_up(1000000, 5000);
    shuffle_buffer();
    write_to_buffer();
    draw();
    assert_int_equal(seen->launches, 1);
    assert_int_equal(wire_status(&h).queued, 1);
    wire_close(busy);
    stop();
}

/* Jobs of one user in both engines use the same permutation at the same time, and each writes to
 * its rank index. So there are two of them, beside the block of the slice. */
static void each_engine_has_its_rank_index(void **state)
{
    (void)state;
    start("1", "host");
    enum { N = 3000000 };
    struct shuf__result_message slice = wire_permutation(N, DEVICE);
    shuf__result_message_add_view(&slice, SHUF__PERMUTE__VIEW_SLICE);
    slice.permutation.algorithm = (char *)"philox24";
    slice.slice.offset = N - 10;
    slice.slice.count = 10;
    slice.slice.stride = 1;
    wire_send_result(w, &slice);
    wire_expect(w, SHUF_OK, "");
    assert_int_equal(wire_status(&h).blocks, 2);
    look_up(N, 5000);
    assert_int_equal(wire_status(&h).blocks, 3);
    stop();
}

/* ---- The load ---- */

static bool has_vectors(void)
{
    const struct shuf__simd_ops *simd;
    struct shuf__error error;
    assert_int_equal(shuf__simd_choose(NULL, &simd, &error), SHUF_OK);
    return strcmp(simd->name, "scalar") != 0;
}

/* The GPU is sooner than one thread, unless other jobs come first. */
static void busy_gpu_leaves_more_to_the_processors(void **state)
{
    enum { JOBS = 4, N = 100000 };
    struct wire *busy[JOBS];
    (void)state;
    if (!has_vectors())
        skip();
    start("1", "auto");
    expect_place(N, MEMFD, "fake");
    for (unsigned i = 0; i < JOBS; i++)
        busy[i] = keep_gpu_busy(i);
    expect_place(N + 1, MEMFD, "cpu");
    for (unsigned i = 0; i < JOBS; i++)
        wire_close(busy[i]);
    stop();
}

/* Users take turns, so many jobs of another user count as one. */
static void queue_of_another_user_counts_as_one_job(void **state)
{
    enum { JOBS = 4, N = 200000, USER = 12345 };
    struct wire *busy[JOBS];
    (void)state;
    if (!has_vectors() || geteuid() != 0) /* only root can become several users */
        skip();
    start_gpu(
        (const char *[]){"threads", "1", "host_results", "auto", "socket_mode", "0666", NULL});
    assert_int_equal(chmod(h.directory, 0755), 0);
    for (unsigned i = 0; i < JOBS; i++)
        busy[i] = keep_gpu_busy_as(USER, i);
    expect_place(N, MEMFD, "fake");
    for (unsigned i = 0; i < JOBS; i++)
        wire_close(busy[i]);
    stop();
}

static void write_pressure(const char *root, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/proc", root);
    mkdir(path, 0755);
    snprintf(path, sizeof path, "%s/proc/pressure", root);
    mkdir(path, 0755);
    snprintf(path, sizeof path, "%s/proc/pressure/cpu", root);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

/* Sixteen threads are sooner than the GPU, unless they wait for processors. Without vector
 * instructions the GPU is sooner in both cases. */
static void busy_processors_leave_more_to_the_gpu(void **state)
{
    static const struct {
        const char *pressure, *backend;
    } rows[] = {
        {"some avg10=0.00 avg60=0.00 avg300=0.00 total=1\n", "cpu"},
        {"some avg10=99.00 avg60=0.00 avg300=0.00 total=1\n", "fake"},
        {"", "cpu"},
    };
    (void)state;
    if (!has_vectors())
        skip();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char root[] = "/tmp/shuf-pressure-XXXXXX";
        assert_non_null(mkdtemp(root));
        snprintf(faults->root, sizeof faults->root, "%s", root);
        write_pressure(root, rows[i].pressure);
        start("16", "auto");
        expect_place(1000000, MEMFD, rows[i].backend);
        stop();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(small_results_are_computed_by_the_host, fake_backend_reset),
        cmocka_unit_test_setup(large_results_of_one_thread_are_computed_by_the_gpu,
                               fake_backend_reset),
        cmocka_unit_test_setup(host_results_decides, fake_backend_reset),
        cmocka_unit_test_setup(host_finds_results_of_the_gpu, fake_backend_reset),
        cmocka_unit_test_setup(host_computes_what_has_no_room_in_the_gpu, fake_backend_reset),
        cmocka_unit_test_setup(host_does_not_wait_for_the_gpu, fake_backend_reset),
        cmocka_unit_test_setup(each_engine_has_its_rank_index, fake_backend_reset),
        cmocka_unit_test_setup(busy_gpu_leaves_more_to_the_processors, fake_backend_reset),
        cmocka_unit_test_setup(queue_of_another_user_counts_as_one_job, fake_backend_reset),
        cmocka_unit_test_setup(busy_processors_leave_more_to_the_gpu, fake_backend_reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
