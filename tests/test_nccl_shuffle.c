/* SPDX-License-Identifier: MIT
 *
 * shuf_nccl_shuffle() on 1 to 8 ranks, which are threads of this process, with a real shufd. Every
 * result is compared with shuf_shuffle() of all records. With the fake NCCL (fake/nccl.h) the ranks
 * share a GPU, or with the fake CUDA runtime they have none. With a real NCCL each rank needs a GPU
 * of its own, so the test skips the cases with more ranks, and the faults.
 */
#include "fake/cudart.h"
#include "fake/nccl.h"
#include "shuf_nccl.h"
#include "support/client.h"
#include "support/cmocka_all.h"
#include "support/random.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RANKS = 8, MESSAGE = 512, OFFSETS = 3, LITTLE = 1 << 19 };

/* These are only there with a fake. */
static void (*break_nccl)(int rank, int call, ncclResult_t error);
static void (*limit_malloc)(size_t most);
static size_t (*count_live)(void);
static int most_ranks;

static void find_fakes(void)
{
    *(void **)&break_nccl = dlsym(RTLD_DEFAULT, "fake_nccl_break");
    *(void **)&limit_malloc = dlsym(RTLD_DEFAULT, "fake_cudart_limit_malloc");
    *(void **)&count_live = dlsym(RTLD_DEFAULT, "fake_cudart_live");
    most_ranks = RANKS;
    if (!break_nccl && (cudaGetDeviceCount(&most_ranks) != cudaSuccess || most_ranks > RANKS))
        most_ranks = RANKS;
}

/* ---- One call on all ranks ----------------------------------------------------- */

/* What a rank does otherwise than the others. */
enum oddity { NOTHING, NO_DAEMON, NO_MEMORY, LITTLE_MEMORY, NO_REQUEST, NO_INPUT, OVERLAP };

struct job {
    int world;
    uint64_t n, input[RANKS], output[RANKS];
    shuf_nccl_request request[RANKS]; /* `input` and `output` are set from the above */
    enum oddity odd[RANKS];
    const unsigned char *in; /* all records */
    unsigned char *out;
    ncclUniqueId id;
    shuf_status status[RANKS];
    char message[RANKS][MESSAGE];
    pthread_barrier_t all_done;
    unsigned leases[RANKS]; /* of all ranks, after their calls */
};

struct rank {
    struct job *job;
    int rank;
    shuf *handle;
    ncclComm_t comm;
    unsigned char *in, *out; /* device memory */
    uint64_t offset;         /* of the records there, so that they are not aligned */
    cudaStream_t stream;
};

static uint64_t sum(const uint64_t *sizes, int count)
{
    uint64_t total = 0;
    for (int i = 0; i < count; i++)
        total += sizes[i];
    return total;
}

/* Threads other than the test's cannot fail an assertion of cmocka. */
static void must(bool right, const char *what)
{
    if (right)
        return;
    fprintf(stderr, "test_nccl_shuffle: %s failed\n", what);
    abort();
}
#define MUST(expression) must(expression, #expression)

static bool count_lease(void *context, const shuf_lease_entry *entry)
{
    *(unsigned *)context += entry->pid == (uint64_t)getpid() && entry->world > 0;
    return true;
}

static void begin(struct rank *r)
{
    const struct job *j = r->job;
    const uint64_t record = j->request[0].record;
    int devices;
    MUST(cudaGetDeviceCount(&devices) == cudaSuccess);
    MUST(cudaSetDevice(r->rank % devices) == cudaSuccess);
    const shuf_status status = shuf_connect(
        &r->handle, j->odd[r->rank] == NO_DAEMON ? "/nonexistent/s" : harness_shared.socket);
    MUST(status == (j->odd[r->rank] == NO_DAEMON ? SHUF_NO_DAEMON : SHUF_OK));
    MUST(shuf_set_reconnect(r->handle, 0) == SHUF_OK);
    MUST(ncclCommInitRank(&r->comm, j->world, j->id, r->rank) == ncclSuccess);
    MUST(cudaMalloc((void **)&r->in, j->input[r->rank] * record + OFFSETS) == cudaSuccess);
    MUST(cudaMalloc((void **)&r->out, j->output[r->rank] * record + OFFSETS) == cudaSuccess);
    MUST(cudaMemcpy(r->in + r->offset, j->in + sum(j->input, r->rank) * record,
                    j->input[r->rank] * record, cudaMemcpyHostToDevice) == cudaSuccess);
}

static void call(struct rank *r)
{
    struct job *j = r->job;
    const enum oddity odd = j->odd[r->rank];
    shuf_nccl_request request = j->request[r->rank];
    unsigned char *in = odd == NO_INPUT ? NULL : r->in + r->offset;
    unsigned char *out = odd == OVERLAP ? in : r->out + r->offset;
    request.input = j->input[r->rank];
    request.output = j->output[r->rank];
    MUST(cudaStreamCreateWithFlags(&r->stream, cudaStreamNonBlocking) == cudaSuccess);
    if (odd == NO_MEMORY || odd == LITTLE_MEMORY)
        limit_malloc(odd == NO_MEMORY ? 0 : LITTLE);
    j->status[r->rank] = shuf_nccl_shuffle(r->handle, r->comm, r->stream,
                                           odd == NO_REQUEST ? NULL : &request, in, out);
    if (odd == NO_MEMORY || odd == LITTLE_MEMORY)
        limit_malloc(SIZE_MAX);
    snprintf(j->message[r->rank], MESSAGE, "%s", shuf_nccl_message());
    pthread_barrier_wait(&j->all_done);
    if (odd != NO_DAEMON)
        MUST(shuf_leases(r->handle, count_lease, &j->leases[r->rank]) == SHUF_OK);
}

/* The ranks may share a GPU. Then cudaStreamDestroy() and cudaFree() of one rank wait for the work
 * of all ranks, so all ranks abort their communicators first. */
static void end(struct rank *r)
{
    struct job *j = r->job;
    const uint64_t record = j->request[0].record;
    const bool failed = j->status[r->rank] != SHUF_OK;
    MUST((failed ? ncclCommAbort(r->comm) : ncclCommDestroy(r->comm)) == ncclSuccess);
    pthread_barrier_wait(&j->all_done);
    MUST(cudaStreamDestroy(r->stream) == cudaSuccess);
    if (j->out)
        MUST(cudaMemcpy(j->out + sum(j->output, r->rank) * record, r->out + r->offset,
                        j->output[r->rank] * record, cudaMemcpyDeviceToHost) == cudaSuccess);
    MUST(cudaFree(r->in) == cudaSuccess && cudaFree(r->out) == cudaSuccess);
    shuf_close(r->handle);
}

static void *run_rank(void *context)
{
    struct rank *r = context;
    begin(r);
    call(r);
    end(r);
    return NULL;
}

static void run(struct job *j)
{
    pthread_t threads[RANKS];
    struct rank ranks[RANKS];
    const size_t before = count_live ? count_live() : 0;
    assert_int_equal(ncclGetUniqueId(&j->id), ncclSuccess);
    pthread_barrier_init(&j->all_done, NULL, (unsigned)j->world);
    for (int r = 0; r < j->world; r++) {
        ranks[r] = (struct rank){.job = j, .rank = r, .offset = random_below(OFFSETS + 1)};
        assert_int_equal(pthread_create(&threads[r], NULL, run_rank, &ranks[r]), 0);
    }
    for (int r = 0; r < j->world; r++)
        pthread_join(threads[r], NULL);
    pthread_barrier_destroy(&j->all_done);
    /* A stream that was busy at the end of its call ends a little later. */
    for (int waited = 0; count_live && count_live() != before && waited < HARNESS_WAIT_MS; waited++)
        usleep(1000);
    if (count_live)
        assert_int_equal(count_live(), before);
}

/* ---- Results ------------------------------------------------------------------- */

static void expect_success(const struct job *j)
{
    for (int r = 0; r < j->world; r++) {
        if (j->status[r] != SHUF_OK)
            fprintf(stderr, "rank %d: %s\n", r, j->message[r]);
        assert_int_equal(j->status[r], SHUF_OK);
        assert_string_equal(j->message[r], "");
    }
}

/* All ranks have the same result. */
static void expect_failure(const struct job *j, shuf_status status, const char *message)
{
    for (int r = 0; r < j->world; r++) {
        assert_string_equal(j->message[r], message);
        assert_int_equal(j->status[r], status);
        assert_int_equal(j->leases[r], 0);
    }
}

static unsigned char *random_bytes(uint64_t bytes)
{
    unsigned char *all = malloc(bytes + sizeof(uint64_t));
    assert_non_null(all);
    for (uint64_t at = 0; at < bytes; at += sizeof(uint64_t)) {
        const uint64_t word = random_u64();
        memcpy(all + at, &word, sizeof word);
    }
    return all;
}

static void expect_shuffle(const struct job *j)
{
    const shuf_nccl_request *q = &j->request[0];
    const uint64_t bytes = j->n * q->record;
    unsigned char *expected = malloc(bytes + 1);
    const shuf_records records = {.algorithm = q->algorithm,
                                  .n = j->n,
                                  .record = q->record,
                                  .seed = q->seed,
                                  .epoch = q->epoch,
                                  .inverse = q->inverse};
    shuf *h = client_open();
    client_expect(h, shuf_shuffle(h, &records, j->in, expected, bytes, NULL), SHUF_OK, "");
    shuf_close(h);
    assert_memory_equal(j->out, expected, bytes);
    free(expected);
}

/* ---- Cases --------------------------------------------------------------------- */

enum sizes { EVEN, UNEVEN, EMPTY, FEW, SIZES };

/* Gives `n` records to the ranks. EMPTY: some ranks have none. FEW: the first half has all. */
static void draw_sizes(enum sizes kind, uint64_t n, int world, uint64_t *sizes)
{
    const int holders = kind == FEW ? (world + 1) / 2 : world;
    memset(sizes, 0, RANKS * sizeof *sizes);
    for (int r = 0; r < holders; r++)
        sizes[r] = kind == EVEN || kind == FEW ? n / (uint64_t)holders : 0;
    for (uint64_t rest = n - sum(sizes, world); rest > 0;) {
        const uint64_t some = random_below(rest) + 1;
        const int r = (int)random_below((uint64_t)holders);
        sizes[kind == EMPTY ? r / 2 * 2 : r] += some;
        rest -= some;
    }
}

static struct job *make_job(int world, uint64_t n, uint64_t record, enum sizes in, enum sizes out)
{
    struct job *j = calloc(1, sizeof *j);
    const uint64_t seed = random_u64();
    j->world = world;
    j->n = n;
    draw_sizes(in, n, world, j->input);
    draw_sizes(out, n, world, j->output);
    for (int r = 0; r < world; r++)
        j->request[r] = (shuf_nccl_request){.seed = seed, .epoch = 3, .record = record};
    j->in = random_bytes(n * record);
    j->out = malloc(n * record + 1);
    return j;
}

static void free_job(struct job *j)
{
    free((void *)(uintptr_t)j->in);
    free(j->out);
    free(j);
}

static void check(int world, uint64_t record, enum sizes in, enum sizes out, uint64_t budget)
{
    const uint64_t n = random_size(record > 100 ? 1000 : 20000);
    const bool inverse = random_below(2);
    struct job *j = make_job(world, n, record, in, out);
    for (int r = 0; r < world; r++) {
        j->request[r].inverse = inverse;
        j->request[r].budget = budget;
    }
    run(j);
    expect_success(j);
    expect_shuffle(j);
    free_job(j);
}

static const int worlds[] = {1, 2, 3, 4, 8};
static const uint64_t records[] = {1, 3, 8, 100, 4096};

static void all_shapes(void **state)
{
    (void)state;
    random_start("all_shapes");
    for (size_t w = 0; w < sizeof worlds / sizeof *worlds && worlds[w] <= most_ranks; w++)
        for (size_t i = 0; i < sizeof records / sizeof *records; i++)
            for (int kind = 0; kind < SIZES; kind++)
                check(worlds[w], records[i], (enum sizes)kind, (enum sizes)random_below(SIZES), 0);
}

/* Budgets for a few rounds, and too small for one record of each pair. */
static void budgets(void **state)
{
    (void)state;
    random_start("budgets");
    for (size_t w = 0; w < sizeof worlds / sizeof *worlds && worlds[w] <= most_ranks; w++) {
        check(worlds[w], 8, UNEVEN, EVEN, 10000);
        check(worlds[w], 100, EVEN, EVEN, 100000);
        check(worlds[w], 4096, EVEN, UNEVEN, 1 << 20);
    }
    if (most_ranks < 3)
        return;
    struct job *j = make_job(3, 600, 8, UNEVEN, UNEVEN);
    j->request[0].budget = 1; /* the rank with the most rounds decides */
    run(j);
    expect_success(j);
    expect_shuffle(j);
    free_job(j);
}

/* The inverse, from other sizes, restores the records. */
static void there_and_back(void **state)
{
    (void)state;
    random_start("there_and_back");
    const int world = most_ranks < 4 ? most_ranks : 4;
    struct job *j = make_job(world, 12345, 8, FEW, UNEVEN);
    run(j);
    expect_success(j);
    struct job *back = make_job(world, 12345, 8, EVEN, EMPTY);
    memcpy((void *)(uintptr_t)back->in, j->out, j->n * 8);
    memcpy(back->input, j->output, sizeof back->input);
    for (int r = 0; r < world; r++) {
        back->request[r] = j->request[r];
        back->request[r].inverse = true;
    }
    run(back);
    expect_success(back);
    assert_memory_equal(back->out, j->in, j->n * 8);
    free_job(j);
    free_job(back);
}

static void no_records(void **state)
{
    (void)state;
    struct job *j = make_job(most_ranks < 2 ? 1 : 2, 0, 8, EVEN, EVEN);
    run(j);
    expect_success(j);
    free_job(j);
}

/* ---- Disagreement and faults --------------------------------------------------- */

/* A job of three ranks, with a fake only. */
static struct job *small_job(void)
{
    if (!break_nccl)
        skip();
    random_start("faults");
    struct job *j = make_job(3, 1000, 8, UNEVEN, EVEN);
    for (int r = 0; r < 3; r++)
        j->request[r].seed = 7;
    return j;
}

static void refuse(struct job *j, shuf_status status, const char *message)
{
    run(j);
    expect_failure(j, status, message);
    free_job(j);
}

static void disagreements(void **state)
{
    (void)state;
    struct job *j = small_job();
    j->request[2].seed = 8;
    refuse(j, SHUF_INVALID, "rank 2: seed 8: expected 7, as on rank 0");
    j = small_job();
    j->request[0].epoch = 4;
    refuse(j, SHUF_INVALID, "rank 1: epoch 3: expected 4, as on rank 0");
    j = small_job();
    j->request[1].inverse = true;
    refuse(j, SHUF_INVALID, "rank 1: inverse 1: expected 0, as on rank 0");
    j = small_job();
    j->request[1].record = 4;
    refuse(j, SHUF_INVALID, "rank 1: record 4: expected 8, as on rank 0");
    j = small_job();
    j->request[1].key = "weekly";
    refuse(j, SHUF_INVALID, "rank 1: key weekly: expected , as on rank 0");
    j = small_job();
    j->request[2].algorithm = "lcg";
    refuse(j, SHUF_INVALID, "rank 2: algorithm lcg: expected primefold, as on rank 0");
}

static void wrong_arguments(void **state)
{
    (void)state;
    struct job *j = small_job();
    j->request[2].record = 0;
    refuse(j, SHUF_INVALID, "rank 2: record 0: expected at least 1 byte");
    j = small_job();
    j->request[1].key = "a name that is longer than that of any key";
    refuse(j, SHUF_INVALID,
           "rank 1: key a name that is longer than that of any key: expected at most 31 bytes");
    j = small_job();
    j->output[1]--;
    refuse(j, SHUF_INVALID, "output: sizes with the sum 999, expected 1000, the sum of the inputs");
    j = small_job();
    memset(j->input, 0, sizeof j->input);
    j->input[1] = 1000;
    j->odd[1] = NO_INPUT;
    refuse(j, SHUF_INVALID, "rank 1: input: NULL: expected 1000 records");
    j = small_job();
    memcpy(j->input, j->output, sizeof j->input);
    j->odd[0] = OVERLAP;
    refuse(j, SHUF_INVALID, "rank 0: output: overlaps the input, expected other memory");
}

static void no_request(void **state)
{
    (void)state;
    struct job *j = make_job(1, 10, 8, EVEN, EVEN);
    j->odd[0] = NO_REQUEST;
    refuse(j, SHUF_INVALID, "request: NULL, expected a pointer");
    assert_int_equal(shuf_nccl_shuffle(NULL, NULL, NULL, NULL, NULL, NULL), SHUF_INVALID);
    assert_string_equal(shuf_nccl_message(), "comm: NULL, expected a pointer");
}

static void refused_by_daemon(void **state)
{
    (void)state;
    struct job *j = small_job();
    for (int r = 0; r < 3; r++)
        j->request[r].algorithm = "philox24";
    refuse(j, SHUF_INVALID,
           "rank 0: algorithm philox24: expected primefold, which computes any position by itself");
    j = small_job();
    j->odd[1] = NO_DAEMON;
    run(j);
    assert_non_null(strstr(j->message[0], "rank 1: socket /nonexistent/s"));
    expect_failure(j, SHUF_NO_DAEMON, j->message[0]);
    free_job(j);
}

/* A rank gets its report through, because only later allocations fail. */
static void out_of_memory(void **state)
{
    (void)state;
    if (!limit_malloc)
        skip();
    struct job *j = make_job(1, 1000, 8, EVEN, EVEN);
    j->odd[0] = NO_MEMORY;
    refuse(j, SHUF_NO_MEMORY, "rank 0 of 1: cudaMalloc: out of memory");
}

/* A rank without memory for its rounds takes shorter ones. The other ranks then take as many. */
static void little_memory(void **state)
{
    (void)state;
    if (!limit_malloc)
        skip();
    random_start("little_memory");
    for (int world = 2; world <= 3; world++) {
        struct job *j = make_job(world, 30000, 1000, UNEVEN, EVEN);
        j->odd[world - 1] = LITTLE_MEMORY;
        run(j);
        expect_success(j);
        expect_shuffle(j);
        free_job(j);
    }
}

/* Checks the status and the message of a rank beside the broken one. `timed_out` counts those that
 * waited for the whole timeout. The first of them ends the exchange for the others, which may have
 * begun later. */
static void expect_broken(const struct job *j, int rank, bool silent, int *timed_out)
{
    char text[64];
    const bool late = silent && j->status[rank] == SHUF_TIMEOUT;
    if (!late)
        assert_int_equal(j->status[rank], SHUF_IO);
    *timed_out += late;
    snprintf(text, sizeof text, "rank %d of 3: exchange: %s", rank,
             late ? "no end after 3000 ms" : "another rank");
    if (!strstr(j->message[rank], text))
        fail_msg("%s: expected %s", j->message[rank], text);
}

/* The calls of a rank: two all-gathers, then the rounds. */
static void break_at(int call, ncclResult_t error, uint64_t timeout_ms, bool silent)
{
    struct job *j = small_job();
    int timed_out = 0;
    for (int r = 0; r < 3; r++) {
        j->request[r].timeout_ms = timeout_ms;
        j->request[r].budget = 2000;
    }
    break_nccl(1, call, error);
    run(j);
    break_nccl(0, 0, ncclSuccess);
    for (int r = 0; r < 3; r++)
        assert_int_equal(j->leases[r], 0);
    assert_int_equal(j->status[1], SHUF_IO);
    assert_non_null(strstr(j->message[1], ": the fake fails"));
    expect_broken(j, 0, silent, &timed_out);
    expect_broken(j, 2, silent, &timed_out);
    assert_int_equal(timed_out > 0, silent);
    free_job(j);
}

static void rank_ends(void **state)
{
    (void)state;
    for (int call = 1; call <= 5; call++)
        break_at(call, ncclRemoteError, 0, false);
}

static void rank_is_silent(void **state)
{
    (void)state;
    for (int call = 1; call <= 5; call += 2)
        break_at(call, ncclSuccess, 3000, true);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_shapes),     cmocka_unit_test(budgets),
        cmocka_unit_test(there_and_back), cmocka_unit_test(no_records),
        cmocka_unit_test(disagreements),  cmocka_unit_test(wrong_arguments),
        cmocka_unit_test(no_request),     cmocka_unit_test(refused_by_daemon),
        cmocka_unit_test(out_of_memory),  cmocka_unit_test(little_memory),
        cmocka_unit_test(rank_ends),      cmocka_unit_test(rank_is_silent),
    };
    harness_backend = harness_backend_or_skip(argc, argv);
    find_fakes();
    cmocka_set_test_filter(getenv("SHUF_TEST_FILTER")); /* the name of one test */
    return cmocka_run_group_tests(tests, harness_start_shared, harness_stop_shared);
}
