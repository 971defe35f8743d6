/* SPDX-License-Identifier: MIT
 *
 * shuf_local.h and shuf_host_part(), in the memory of the command line ("cpu": host memory, "cuda":
 * device memory): the golden tables, every view, look-ups, shuffles, refusals, threads and fork.
 * Behind each result there is a guard that no call may change.
 */
#include "shuf.h"
#include "shuf/fingerprint.h"
#include "support/cmocka_all.h"
#include "support/draws.h"
#include "support/expected.h"
#include "support/golden.h"
#include "support/gpu.h"
#include "support/random.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { GUARD = 64 };

static bool on_gpu;
static unsigned threads = 1;

/* ---- Memory of the place under test ---- */

/* An array with a guard behind it. */
struct array {
    uint8_t *memory;
    size_t bytes;
};

static struct array array_make(size_t bytes, const void *contents)
{
    uint8_t *host = malloc(bytes + GUARD);
    assert_non_null(host);
    memset(host, 0xa5, bytes + GUARD);
    if (contents)
        memcpy(host, contents, bytes);
    if (!on_gpu)
        return (struct array){host, bytes};
    struct array array = {gpu_alloc(bytes + GUARD), bytes};
    gpu_write(array.memory, bytes + GUARD, host);
    free(host);
    return array;
}

/* The contents, which the caller frees. Checks the guard and frees the array. */
static void *array_take(struct array array)
{
    uint8_t *host = array.memory;
    if (on_gpu) {
        host = malloc(array.bytes + GUARD);
        assert_non_null(host);
        gpu_read(array.memory, array.bytes + GUARD, host);
        gpu_free(array.memory);
    }
    for (int i = 0; i < GUARD; i++)
        assert_int_equal(host[array.bytes + i], 0xa5);
    return host;
}

/* ---- Calls ---- */

static void check(shuf_status status)
{
    if (status != SHUF_OK)
        fail_msg("%s: %s", shuf_status_name(status), shuf_message(NULL));
}

static shuf_status fill(const shuf_request *request, void *out, size_t bytes)
{
    size_t room = 0;
    if (!on_gpu)
        return shuf_host_fill(request, threads, out, bytes);
    const shuf_status status = shuf_cuda_workspace(request, &room);
    if (status)
        return status;
    void *workspace = room ? gpu_alloc(room) : NULL;
    const shuf_status filled = shuf_cuda_fill(request, out, bytes, workspace, room, NULL);
    uint8_t waits;
    if (!filled)
        gpu_read(out, 1, &waits);
    gpu_free(workspace);
    return filled;
}

/* All values, which the caller frees. */
static void *filled(const shuf_request *request, shuf_shape *shape)
{
    check(shuf_shape_of(request, shape, NULL, 0));
    const struct array out = array_make(shape->bytes, NULL);
    check(fill(request, out.memory, shape->bytes));
    return array_take(out);
}

static uint64_t fingerprint_of(const void *values, unsigned width, uint64_t count)
{
    uint64_t sum = 1;
    if (!on_gpu) {
        check(shuf_host_fingerprint(values, width, count, threads, &sum));
        return sum;
    }
    const struct array from = array_make(count * width, values), to = array_make(8, NULL);
    check(shuf_cuda_fingerprint(from.memory, width, count, (uint64_t *)to.memory, NULL));
    free(array_take(from));
    uint64_t *found = array_take(to);
    sum = *found;
    free(found);
    return sum;
}

static void *looked_up(const shuf_permutation *p, shuf_direction direction, const uint64_t *at,
                       size_t count)
{
    const struct array from = array_make(count * 8, at), to = array_make(count * 8, NULL);
    if (on_gpu)
        check(shuf_cuda_index(p, direction, SHUF_U64, from.memory, count, to.memory, NULL));
    else
        check(shuf_host_index(p, direction, threads, (uint64_t *)from.memory, count,
                              (uint64_t *)to.memory));
    free(array_take(from));
    return array_take(to);
}

static shuf_status shuffle(const shuf_records *records, const void *in, void *out, size_t bytes)
{
    const shuf_request request = {SHUF_RECORDS, .records = *records};
    size_t room = 0;
    if (!on_gpu)
        return shuf_host_shuffle(records, threads, in, out, bytes);
    const shuf_status status = shuf_cuda_workspace(&request, &room);
    if (status)
        return status;
    room += 1 << 20; /* more than needed does not matter */
    void *workspace = gpu_alloc(room);
    const shuf_status queued = shuf_cuda_shuffle(records, in, out, bytes, workspace, room, NULL);
    uint8_t waits;
    if (!queued)
        gpu_read(out, 1, &waits);
    gpu_free(workspace);
    return queued;
}

/* ---- Values ---- */

static void check_permutation(const struct golden *row)
{
    const shuf_request request = {
        .permutation = {
            .algorithm = row->algorithm, .n = row->n, .seed = row->seed, .epoch = row->epoch}};
    shuf_shape shape;
    void *values = filled(&request, &shape);
    for (unsigned i = 0; i < row->count; i++)
        assert_int_equal(expected_read(values, (unsigned)shape.width, golden_position(row, i)),
                         row->values[i]);
    assert_int_equal(fingerprint_of(values, (unsigned)shape.width, shape.count), row->fingerprint);
    free(values);
}

static void golden_permutations_match(void **state)
{
    (void)state;
    struct golden row;
    unsigned rows = 0;
    FILE *table = golden_open("permute.txt");
    for (; golden_next(table, &row); rows++)
        if (rows % GOLDEN_STEP == 0)
            check_permutation(&row);
    fclose(table);
    assert_in_range(rows, 50, 10000);
}

static void check_stream(const struct golden_stream *row)
{
    const bool box_muller = strcmp(row->distribution, "box-muller") == 0;
    const enum shuf__distribution law = draw_distribution(row->distribution);
    const bool uniform = law == SHUF_DISTRIBUTION_UNIFORM;
    const shuf_request request = {
        SHUF_NUMBERS, .numbers = {.distribution = box_muller ? SHUF_GAUSS : (shuf_distribution)law,
                                  .method = box_muller ? SHUF_BOX_MULLER : SHUF_TABLE,
                                  .seed = row->seed,
                                  .stream = row->stream,
                                  .mean = row->mean,
                                  .std = uniform ? 0 : row->std,
                                  .bound = row->bound,
                                  .offset = row->offset,
                                  .count = row->count,
                                  .dtype = draw_dtype(row->dtype)}};
    const unsigned width = draw_width(request.numbers.dtype);
    shuf_shape shape;
    uint8_t *values = filled(&request, &shape);
    for (unsigned i = 0; i < row->shown; i++)
        assert_memory_equal(values + i * width, &row->bits[i], width);
    assert_int_equal(fingerprint_of(values, width, shape.count), row->fingerprint);
    free(values);
}

static void golden_streams_match(void **state)
{
    (void)state;
    struct golden_stream row;
    unsigned rows = 0;
    FILE *table = golden_open("streams.txt");
    for (; golden_next_stream(table, &row); rows++)
        check_stream(&row);
    fclose(table);
    assert_in_range(rows, 200, 10000);
}

static void golden_look_ups_match(void **state)
{
    (void)state;
    struct golden_positions row;
    unsigned rows = 0;
    FILE *table = golden_open("primefold.txt");
    for (; golden_next_positions(table, &row); rows++) {
        const shuf_permutation p = {.n = row.n, .seed = row.seed, .epoch = row.epoch};
        uint64_t *values = looked_up(&p, SHUF_FORWARD, row.position, row.count);
        uint64_t *positions = looked_up(&p, SHUF_INVERSE, row.value, row.count);
        assert_memory_equal(values, row.value, row.count * sizeof *values);
        assert_memory_equal(positions, row.position, row.count * sizeof *positions);
        free(values);
        free(positions);
    }
    fclose(table);
    assert_in_range(rows, 50, 10000);
}

/* Half of the sizes are small, and some are just beside the tiles of the kernels. */
static uint64_t random_n(void)
{
    static const uint64_t near[] = {1, 2, 255, 256, 257, 4096, 16384, 65536, 1 << 20, 1 << 22};
    const uint64_t n = near[random_below(sizeof near / sizeof *near)] + random_below(3);
    return random_below(2) ? n : random_size(1 << 18);
}

static void random_views_match(void **state)
{
    (void)state;
    static const char *const algorithms[] = {NULL, "primefold", "philox24", "lcg"};
    random_start("random_views_match");
    for (int i = 0; i < (TEST_SANITIZED ? 40 : 150); i++) {
        shuf_request request = {.permutation = {.algorithm = algorithms[random_below(4)],
                                                .n = random_n(),
                                                .seed = random_u64(),
                                                .epoch = random_u64()}};
        uint64_t count;
        shuf_shape shape;
        expected_random_view(&request);
        if (random_below(2))
            request.permutation.dtype = SHUF_U64;
        uint64_t *expected = expected_values(&request, &count);
        check(shuf_shape_of(&request, &shape, NULL, 0));
        if (shape.bytes > 0) {
            void *values = filled(&request, &shape);
            if (!expected_equal(expected, values, (unsigned)shape.width, count))
                fail_msg("%s, n %" PRIu64 ", view %d, epochs %" PRIu64,
                         request.permutation.algorithm, request.permutation.n,
                         (int)request.permutation.view, request.permutation.epochs);
            free(values);
        }
        free(expected);
    }
}

/* Windows of random sizes, with all views. */
static void random_windows_match(void **state)
{
    (void)state;
    random_start("random_windows_match");
    for (int i = 0; i < (TEST_SANITIZED ? 40 : 120); i++) {
        shuf_request request = {
            .permutation = {.n = random_n(), .seed = random_u64(), .epoch = random_u64()}};
        shuf_permutation *p = &request.permutation;
        uint64_t count;
        shuf_shape shape;
        p->chunk = random_size(p->n);
        p->window = random_size((p->n - 1) / p->chunk + 1);
        expected_random_view(&request);
        p->dtype = random_below(2) ? SHUF_U64 : SHUF_AUTO;
        uint64_t *expected = expected_values(&request, &count);
        check(shuf_shape_of(&request, &shape, NULL, 0));
        if (shape.bytes > 0) {
            void *values = filled(&request, &shape);
            if (!expected_equal(expected, values, (unsigned)shape.width, count))
                fail_msg("n %" PRIu64 ", chunk %" PRIu64 ", window %" PRIu64 ", view %d, offset "
                         "%" PRIu64 ", stride %" PRIu64 ", rank %" PRIu64 " of %" PRIu64,
                         p->n, p->chunk, p->window, (int)p->view, p->offset, p->stride, p->rank,
                         p->world);
            free(values);
        }
        free(expected);
    }
}

/* A row of windowed.txt, after the parameters. */
static void check_windowed_row(const shuf_permutation *p, uint64_t fingerprint, char *rest)
{
    const shuf_request request = {.permutation = *p};
    shuf_shape shape;
    void *values = filled(&request, &shape);
    for (uint64_t i = 0; *rest; i++) {
        const uint64_t at = p->n <= 40 || i < 8 ? i : p->n - 12 + i;
        assert_int_equal(expected_read(values, (unsigned)shape.width, at),
                         strtoull(rest, &rest, 10));
    }
    assert_int_equal(fingerprint_of(values, (unsigned)shape.width, shape.count), fingerprint);
    free(values);
}

static void check_windowed_places(const shuf_permutation *p, char *rest)
{
    while (*rest) {
        const uint64_t position = strtoull(rest, &rest, 10), value = strtoull(rest, &rest, 10);
        shuf_request request = {.permutation = *p};
        shuf_shape shape;
        request.permutation.view = SHUF_VIEW_SLICE;
        request.permutation.offset = position;
        request.permutation.count = 1;
        void *found = filled(&request, &shape);
        assert_int_equal(expected_read(found, (unsigned)shape.width, 0), value);
        free(found);
        uint64_t out;
        check(shuf_host_index(p, SHUF_FORWARD, 1, &position, 1, &out));
        assert_int_equal(out, value);
        check(shuf_host_index(p, SHUF_INVERSE, 1, &value, 1, &out));
        assert_int_equal(out, position);
    }
}

static void golden_windows_match(void **state)
{
    (void)state;
    unsigned rows = 0;
    FILE *table = golden_open("windowed.txt");
    for (char *line; (line = golden_line(table)) != NULL; rows++) {
        shuf_permutation p = {0};
        uint64_t fingerprint;
        int used = 0;
        assert_int_equal(sscanf(line,
                                "%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNx64 " %" SCNx64
                                " %" SCNx64 "%n",
                                &p.n, &p.chunk, &p.window, &p.seed, &p.epoch, &fingerprint, &used),
                         6);
        if (fingerprint)
            check_windowed_row(&p, fingerprint, line + used);
        else
            check_windowed_places(&p, line + used);
    }
    fclose(table);
    assert_in_range(rows, 30, 10000);
}

static void check_shuffle(const shuf_records *records)
{
    const size_t bytes = records->n * records->record;
    const shuf_request order = {.permutation = {.algorithm = records->algorithm,
                                                .n = records->n,
                                                .seed = records->seed,
                                                .epoch = records->epoch}};
    uint64_t *p = expected_values(&order, NULL);
    uint8_t *x = malloc(bytes);
    assert_non_null(x);
    for (size_t i = 0; i < bytes; i++)
        x[i] = (uint8_t)(i * 7 + i / 251 + i / 65536);
    const struct array in = array_make(bytes, x), out = array_make(bytes, NULL);
    check(shuffle(records, in.memory, out.memory, bytes));
    free(array_take(in));
    uint8_t *y = array_take(out);
    for (uint64_t i = 0; i < records->n; i++) {
        const uint64_t from = records->inverse ? i : p[i], to = records->inverse ? p[i] : i;
        if (memcmp(y + to * records->record, x + from * records->record, records->record) != 0)
            fail_msg("n %" PRIu64 ", record %" PRIu64 ", inverse %d: record %" PRIu64, records->n,
                     records->record, records->inverse, to);
    }
    free(y);
    free(x);
    free(p);
}

/* A shuffle of n numbers of 32 bits, `beside` bytes behind a line of the cache. */
static void check_shuffle_at(size_t beside, uint64_t n)
{
    const shuf_records records = {.n = n, .record = 4, .seed = 3};
    uint32_t *in = malloc(4 * n), *order = malloc(4 * n);
    char *out = aligned_alloc(64, (4 * n + beside + 127) / 64 * 64);
    assert_true(in && order && out);
    const shuf_request request = {.permutation = {.n = n, .seed = 3}};
    check(shuf_host_fill(&request, 1, order, 4 * n));
    for (uint64_t i = 0; i < n; i++)
        in[i] = (uint32_t)(7 * i);
    check(shuf_host_shuffle(&records, 1, in, out + beside, 4 * n));
    for (uint64_t i = 0; i < n; i++)
        assert_int_equal(((uint32_t *)(void *)(out + beside))[i], 7 * order[i]);
    free(out);
    free(order);
    free(in);
}

static void shuffles_match(void **state)
{
    (void)state;
    static const uint64_t widths[] = {1, 2, 3, 4, 8, 12, 16, 100, 4096};
    random_start("shuffles_match");
    for (int i = 0; i < (TEST_SANITIZED ? 30 : 60); i++) {
        shuf_records records = {.algorithm = i % 5 == 4 ? "philox24" : NULL,
                                .n = random_n() % 70000 + 1,
                                .record = widths[random_below(9)],
                                .seed = random_u64(),
                                .epoch = random_u64(),
                                .inverse = random_below(2)};
        if (records.n * records.record > 8 << 20)
            records.record = 1;
        check_shuffle(&records);
    }
    check_shuffle(&(shuf_records){.n = 9, .record = 600001, .seed = 1});
    if (!on_gpu)
        check_shuffle_at(24,
                         9000011); /* a large array that does not begin at a line of the cache */
    check_shuffle(&(shuf_records){.n = 3000001, .record = 4, .seed = 1, .inverse = true});
}

/* All positions of a permutation, and back. */
static void look_ups_are_inverse(void **state)
{
    (void)state;
    random_start("look_ups_are_inverse");
    for (int i = 0; i < 40; i++) {
        const uint64_t n = random_n() % 100000 + 1;
        const shuf_permutation p = {.n = n, .seed = random_u64(), .epoch = random_u64()};
        const shuf_request request = {.permutation = p};
        uint64_t *all = expected_values(&request, NULL), *at = malloc(n * sizeof *at);
        assert_non_null(at);
        for (uint64_t k = 0; k < n; k++)
            at[k] = k;
        uint64_t *values = looked_up(&p, SHUF_FORWARD, at, n);
        assert_memory_equal(values, all, n * sizeof *all);
        uint64_t *positions = looked_up(&p, SHUF_INVERSE, values, n);
        assert_memory_equal(positions, at, n * sizeof *at);
        free(positions);
        free(values);
        free(at);
        free(all);
    }
}

/* ---- Refusals ---- */

static void expect_refusal(shuf_status status, const char *words)
{
    assert_int_equal(status, SHUF_INVALID);
    if (!strstr(shuf_message(NULL), words))
        fail_msg("%s: expected %s", shuf_message(NULL), words);
}

static void bad_requests_are_refused(void **state)
{
    (void)state;
    const struct array out = array_make(4096, NULL);
    const struct {
        shuf_request request;
        size_t bytes;
        const char *words;
    } rows[] = {
        {{.permutation = {.n = 0}}, 4096, "n"},
        {{.permutation = {.n = 2000}},
         4096,
         "bytes 4096: expected at least 8000 for 2000 values of 4 bytes (u32"},
        {{.permutation = {.n = 10, .key = "secret"}}, 4096, "key secret"},
        {{.permutation = {.n = 10, .chunk = 3}}, 4096, "window 0"},
        {{.permutation = {.n = 10, .window = 3}}, 4096, "chunk 0"},
        {{.permutation = {.n = 10, .chunk = 3, .window = 2, .algorithm = "lcg"}}, 4096, "lcg"},
        {{.permutation = {.n = 10, .algorithm = "no"}}, 4096, "no"},
        {{.permutation = {.n = 10, .algorithm = "a\n\33[2J"}}, 4096, "a??[2J"},
        {{SHUF_NUMBERS, .numbers = {.distribution = SHUF_GAUSS, .count = 8}}, 4096, "std"},
        {{.permutation = {.n = 10, .fingerprint = true}}, 4096, "fingerprint: a fill returns none"},
        {{SHUF_NUMBERS, .numbers = {SHUF_UNIFORM, .count = 8, .fingerprint = true}},
         4096,
         "fingerprint: a fill returns none"},
        {{SHUF_NUMBERS, .numbers = {SHUF_UNIFORM, .count = 8, .moments = true}},
         4096,
         "moments: a fill returns none"},
        {{SHUF_RECORDS, .records = {.n = 8, .record = 8}}, 4096, "RECORDS"},
        {{SHUF_BUFFER, .bytes = 8}, 4096, "BUFFER"},
        {{.kind = (shuf_kind)77}, 4096, "kind 77"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect_refusal(
            on_gpu ? shuf_cuda_fill(&rows[i].request, out.memory, rows[i].bytes, NULL, 0, NULL)
                   : shuf_host_fill(&rows[i].request, 1, out.memory, rows[i].bytes),
            rows[i].words);
    uint8_t *contents = array_take(out);
    for (int i = 0; i < 4096; i++)
        assert_int_equal(contents[i], 0xa5); /* nothing half-served */
    free(contents);
}

/* A step at the end of a shard, and a world above n with drop_last. */
static void shards_without_values(void **state)
{
    (void)state;
    const shuf_permutation rows[] = {
        {.n = 1000, .view = SHUF_VIEW_SHARD, .rank = 1, .world = 8, .step = 125},
        {.n = 1000, .chunk = 2, .window = 2, .view = SHUF_VIEW_SHARD, .world = 8, .step = 125},
        {.n = 1000,
         .chunk = 5,
         .window = 3,
         .view = SHUF_VIEW_SHARD,
         .world = 1001,
         .drop_last = 1},
        {.n = 9, .algorithm = "philox24", .view = SHUF_VIEW_SHARD, .world = 3, .step = 3},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const shuf_request request = {.permutation = rows[i]};
        shuf_shape shape;
        free(filled(&request, &shape));
        assert_int_equal(shape.bytes, 0);
    }
}

static void bad_pointers_are_refused(void **state)
{
    (void)state;
    const shuf_request request = {.permutation = {.n = 8}};
    const shuf_records records = {.n = 8, .record = 8};
    uint64_t array[16];
    uint64_t sum;
    expect_refusal(shuf_host_fill(&request, 1, NULL, 99), "out NULL");
    expect_refusal(shuf_host_fill(NULL, 1, array, 99), "request NULL");
    expect_refusal(shuf_host_shuffle(&records, 1, array, array + 1, 64), "overlap");
    expect_refusal(shuf_host_shuffle(&records, 1, array, array + 8, 63),
                   "expected at least 64 for 8 records");
    expect_refusal(shuf_host_fingerprint(array, 3, 8, 1, &sum), "width 3");
    array[0] = 8;
    expect_refusal(shuf_host_index(&request.permutation, SHUF_FORWARD, 1, array, 1, array), "8");
    const shuf_permutation counted = {.algorithm = "philox24", .n = 9};
    expect_refusal(shuf_host_index(&counted, SHUF_FORWARD, 1, array, 1, array), "primefold");
    expect_refusal(shuf_host_fill(&request, 1, (uint8_t *)array + 1, sizeof array - 8),
                   "multiple of 4");
    expect_refusal(shuf_host_fill(&request, UINT32_MAX, array, sizeof array), "threads");
    check(shuf_host_fingerprint(NULL, 4, 0, 1, &sum));
    assert_int_equal(sum, 0);
}

static void bad_device_memory_is_refused(void **state)
{
    (void)state;
    const shuf_request request = {.permutation = {.n = 8}};
    const shuf_request ranks = {SHUF_RANKS, .ranks = {.n = 8, .world = 2}};
    const shuf_request large = {.permutation = {.algorithm = "philox24", .n = UINT64_C(1) << 33}};
    const shuf_request scan = {.permutation = {.algorithm = "philox24", .n = 1000}};
    uint64_t host[16];
    size_t room;
    if (!on_gpu)
        return;
    uint8_t *device = gpu_alloc(1 << 16);
    expect_refusal(shuf_cuda_fill(&request, host, sizeof host, NULL, 0, NULL), "host");
    expect_refusal(shuf_cuda_fill(&request, device + 8, 64, NULL, 0, NULL), "multiple of 16");
    expect_refusal(shuf_cuda_fill(&scan, device, 1 << 16, NULL, 0, NULL), "workspace of 0 bytes");
    expect_refusal(shuf_cuda_fill(&scan, device, 1 << 16, device, 1 << 20, NULL), "overlap");
    expect_refusal(
        shuf_cuda_index(&request.permutation, SHUF_FORWARD, SHUF_U64, device, 8, device + 16, NULL),
        "overlap");
    expect_refusal(shuf_cuda_workspace(&ranks, &room), "daemon");
    expect_refusal(shuf_cuda_workspace(&large, &room), "philox24");
    expect_refusal(
        shuf_cuda_index(&request.permutation, SHUF_FORWARD, SHUF_F32, device, 1, device, NULL),
        "dtype");
    gpu_free(device);
}

/* ---- Threads and processes ---- */

/* Every algorithm, law, type and method, and look-ups and windows. A failed assertion in a thread
 * ends the program. */
static void *match_golden_tables(void *unused)
{
    golden_permutations_match(NULL);
    golden_streams_match(NULL);
    golden_look_ups_match(NULL);
    golden_windows_match(NULL);
    return unused;
}

/* test_local_cuda.cu has the threads of a GPU. */
static void eight_threads_match_the_golden_tables(void **state)
{
    (void)state;
    pthread_t thread[8];
    if (on_gpu)
        skip();
    for (int i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, match_golden_tables, NULL), 0);
    for (int i = 0; i < 8; i++)
        pthread_join(thread[i], NULL);
}

static void a_team_computes_the_same_values(void **state)
{
    (void)state;
    const shuf_request request = {.permutation = {.n = 1000003, .seed = 5}};
    shuf_shape shape;
    uint64_t *expected = expected_values(&request, NULL);
    for (unsigned team = 0; team < 6; team++) {
        threads = team;
        void *values = filled(&request, &shape);
        assert_true(expected_equal(expected, values, 4, shape.count));
        free(values);
    }
    threads = 1;
    free(expected);
}

/* A child of a process with a team computes alone; GNU's OpenMP would wait there for ever. */
static void a_child_of_fork_computes(void **state)
{
    (void)state;
    const shuf_request request = {.permutation = {.n = 1000003, .seed = 5}};
    uint32_t *values = malloc(4 * request.permutation.n);
    assert_non_null(values);
    check(shuf_host_fill(&request, 3, values, 4 * request.permutation.n));
    const uint32_t last = values[1000002];
    const pid_t child = fork();
    if (child == 0) {
        alarm(60);
        values[1000002] = ~last;
        const bool good = shuf_host_fill(&request, 3, values, 4 * request.permutation.n) == 0;
        _exit(good && values[1000002] == last ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    free(values);
}

static bool interrupt(void)
{
    return true;
}

static void an_interrupt_ends_a_call(void **state)
{
    (void)state;
    const shuf_request request = {.permutation = {.n = 1000003}};
    uint32_t *values = malloc(4 * request.permutation.n);
    assert_non_null(values);
    shuf_set_interrupt(interrupt);
    assert_int_equal(shuf_host_fill(&request, 2, values, 4 * request.permutation.n),
                     SHUF_CANCELLED);
    uint64_t fingerprint, *at = calloc(100000, sizeof *at);
    assert_int_equal(shuf_host_index(&request.permutation, SHUF_FORWARD, 2, at, 100000, at),
                     SHUF_CANCELLED);
    assert_int_equal(shuf_host_fingerprint(values, 4, request.permutation.n, 2, &fingerprint),
                     SHUF_CANCELLED);
    shuf_set_interrupt(NULL);
    check(shuf_host_fill(&request, 2, values, 4 * request.permutation.n));
    check(shuf_host_fingerprint(values, 4, request.permutation.n, 2, &fingerprint));
    free(at);
    free(values);
}

/* ---- Parts of any size make the values and the fingerprint of the whole ---- */

static void expect_part_refused(shuf_status status, const char *words)
{
    assert_int_equal(status, SHUF_INVALID);
    assert_non_null(strstr(shuf_message(NULL), words));
}

/* All kinds that have parts: slices, a shard whose last value comes from the front, rows, windows,
 * compaction, and types of 2, 4 and 8 bytes. */
static const shuf_request divisible[] = {
    {.permutation = {.n = 100003, .seed = 5}},
    {.permutation = {.n = 90007, .seed = 5, .dtype = SHUF_U64, .epoch = 3}},
    {.permutation =
         {.n = 1000003, .view = SHUF_VIEW_SLICE, .offset = 7, .stride = 13, .count = 5000}},
    {.permutation = {.n = 10001, .seed = 5, .view = SHUF_VIEW_SHARD, .rank = 2, .world = 4}},
    {.permutation = {.n = 1001, .seed = 5, .epoch = 2, .epochs = 7}},
    {.permutation = {.n = 50001, .seed = 5, .chunk = 100, .window = 7, .epochs = 2}},
    {.permutation = {.algorithm = "philox24", .n = 5003, .seed = 5, .epochs = 2}},
    {SHUF_NUMBERS, .numbers = {SHUF_GAUSS, .seed = 5, .offset = 9, .count = 9001, .std = 1}},
    {SHUF_NUMBERS, .numbers = {SHUF_GAUSS, .seed = 5, .count = 9001, .std = 2, .dtype = SHUF_F16}},
    {SHUF_NUMBERS, .numbers = {SHUF_BERNOULLI, .seed = 5, .count = 777, .mean = 0.3}},
};

/* Computes the values in parts of random sizes. Returns the sum of the shares. */
static uint64_t fill_parts(const shuf_request *request, const shuf_shape *shape, uint8_t *values)
{
    const uint64_t all = shape->rows * shape->count;
    uint64_t sum = 0, share, count;
    for (uint64_t first = 0; first < all; first += count) {
        count = 1 + random_below(all / 5);
        count = count < all - first ? count : all - first;
        check(shuf_host_part(request, first, count, 1, values + first * shape->width, &share));
        sum += share;
    }
    return sum;
}

static void parts_make_the_whole(void **state)
{
    (void)state;
    random_start("parts_make_the_whole");
    for (size_t i = 0; i < sizeof divisible / sizeof *divisible; i++) {
        shuf_shape shape;
        uint64_t fingerprint;
        check(shuf_shape_of(&divisible[i], &shape, NULL, 0));
        const uint64_t count = shape.rows * shape.count;
        uint8_t *whole = malloc(shape.bytes), *parts = malloc(shape.bytes);
        assert_true(whole && parts);
        check(shuf_host_fill(&divisible[i], 1, whole, shape.bytes));
        check(shuf_host_fingerprint(whole, (unsigned)shape.width, count, 1, &fingerprint));
        assert_int_equal(fill_parts(&divisible[i], &shape, parts), fingerprint);
        assert_memory_equal(parts, whole, shape.bytes);
        free(whole);
        free(parts);
    }
}

static void parts_outside_are_refused(void **state)
{
    (void)state;
    const shuf_request request = {.permutation = {.n = 8, .epochs = 2}};
    const shuf_request named = {.permutation = {.n = 8, .key = "k"}};
    const shuf_request ranks = {SHUF_RANKS, .ranks = {.n = 8, .world = 2}};
    uint64_t array[16], share = 1;
    expect_part_refused(shuf_host_part(&request, 0, 17, 1, array, NULL),
                        "the result has 16 values");
    expect_part_refused(shuf_host_part(&request, 17, 0, 1, array, NULL),
                        "the result has 16 values");
    expect_part_refused(shuf_host_part(&request, 9, UINT64_MAX - 4, 1, array, NULL), "16 values");
    expect_part_refused(shuf_host_part(&named, 0, 1, 1, array, NULL), "key k");
    expect_part_refused(shuf_host_part(&ranks, 0, 1, 1, array, NULL), "a plan has no parts");
    expect_part_refused(shuf_host_part(&request, 0, 1, 1, (uint8_t *)array + 1, NULL),
                        "multiple of 4");
    check(shuf_host_part(&request, 16, 0, 1, NULL, &share));
    assert_int_equal(share, 0);
}

int main(int argc, char **argv)
{
    on_gpu = argc > 1 && strcmp(argv[1], "cuda") == 0;
    if (on_gpu && !gpu_exists())
        return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_permutations_match),
        cmocka_unit_test(golden_streams_match),
        cmocka_unit_test(golden_look_ups_match),
        cmocka_unit_test(random_views_match),
        cmocka_unit_test(golden_windows_match),
        cmocka_unit_test(random_windows_match),
        cmocka_unit_test(shuffles_match),
        cmocka_unit_test(look_ups_are_inverse),
        cmocka_unit_test(bad_requests_are_refused),
        cmocka_unit_test(shards_without_values),
        cmocka_unit_test(bad_pointers_are_refused),
        cmocka_unit_test(bad_device_memory_is_refused),
        cmocka_unit_test(eight_threads_match_the_golden_tables),
        cmocka_unit_test(a_team_computes_the_same_values),
        cmocka_unit_test(a_child_of_fork_computes),
        cmocka_unit_test(an_interrupt_ends_a_call),
        cmocka_unit_test(parts_make_the_whole),
        cmocka_unit_test(parts_outside_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
