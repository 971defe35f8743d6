/* SPDX-License-Identifier: MIT
 *
 * See computation.h.
 */
#include "computation.h"

#include "cmocka_all.h"
#include "draws.h"
#include "golden.h"
#include "shuf/fingerprint.h"
#include "shuf/lcg.h"
#include "shuf/philox24.h"
#include "shuf/primefold.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SKIPPED = 77, GUARD = 64 };

struct shuf__backend *backend;
bool computation_full;
enum shuf__memory computation_kind = SHUF__MEMORY_KINDS;

struct shuf__backend *computation_open(const char *spec)
{
    struct shuf__backend *opened = NULL;
    struct shuf__error error = {0};
    shuf_status status = shuf__backend_open(spec, 0, &opened, &error);
    if (status == SHUF_OK) {
        printf("%s: %s, %s\n", spec, opened->device, opened->device_id);
        cmocka_set_test_filter(getenv("SHUF_TEST_FILTER"));
        return opened;
    }
    fprintf(stderr, "%s\n", error.text);
    exit(status == SHUF_DEVICE ? SKIPPED : 1);
}

bool computation_next_kind(void)
{
    int kind = computation_kind == SHUF__MEMORY_KINDS ? 0 : (int)computation_kind + 1;
    while (kind < SHUF__MEMORY_KINDS &&
           (shuf__memory_is_private((enum shuf__memory)kind) || !backend->ops->makes[kind]))
        kind++;
    computation_kind = (enum shuf__memory)kind;
    return kind < SHUF__MEMORY_KINDS;
}

const char *computation_kind_name(void)
{
    static const char *const names[] = {[SHUF__MEMORY_MEMFD] = "memfd",
                                        [SHUF__MEMORY_CUDA_FD] = "cuda-fd",
                                        [SHUF__MEMORY_CUDA_IPC] = "cuda-ipc",
                                        [SHUF__MEMORY_KINDS] = "none"};
    return names[computation_kind];
}

int computation_run_tests(int argc, char **argv, const struct CMUnitTest *tests, size_t count)
{
    int failed = 0;
    backend = computation_open(argc == 2 ? argv[1] : "");
    computation_full = strcmp(backend->ops->name, "cuda") == 0 || getenv("SHUF_TEST_FULL") ||
                       (strcmp(argv[1], "cpu") == 0 && !TEST_SANITIZED);
    while (computation_next_kind())
        failed += _cmocka_run_group_tests(computation_kind_name(), tests, count, NULL, NULL);
    backend->ops->close(backend);
    return failed != 0;
}

enum shuf_algorithm computation_algorithm(const char *name)
{
    static const char *const names[] = {
#define X(name, text, description, random_access) [SHUF_ALGORITHM_##name] = text,
        SHUF_ALGORITHM_MAP(X)
#undef X
    };
    for (unsigned i = 0; i < SHUF_ALGORITHM_COUNT; i++)
        if (strcmp(names[i], name) == 0)
            return (enum shuf_algorithm)i;
    fail_msg("no algorithm %s", name);
    return SHUF_ALGORITHM_COUNT;
}

uint64_t computation_value_count(const struct shuf__computation *computation)
{
    const struct shuf__shape shape = shuf__request_shape(&computation->request);
    return shape.rows * shape.count;
}

uint64_t computation_bytes(const struct shuf__computation *computation)
{
    return shuf__request_shape(&computation->request).bytes;
}

unsigned computation_width(const struct shuf__computation *computation)
{
    return (unsigned)shuf__request_shape(&computation->request).width;
}

void computation_set_width(struct shuf__computation *computation, unsigned width)
{
    computation->request.dtype = width == 4 ? SHUF_U32 : SHUF_U64;
}

static struct shuf__permutation whole_row(enum shuf_algorithm algorithm, uint64_t n, uint64_t seed,
                                          uint64_t epoch)
{
    return (struct shuf__permutation){.algorithm = algorithm,
                                      .n = n,
                                      .seed = seed,
                                      .epoch = epoch,
                                      .rows = 1,
                                      .count = n,
                                      .stride = 1};
}

struct shuf__computation computation_whole(enum shuf_algorithm algorithm, uint64_t n, uint64_t seed,
                                           uint64_t epoch)
{
    return (struct shuf__computation){
        .request = {.kind = SHUF__PERMUTATION,
                    .dtype = n <= UINT64_C(1) << 32 ? SHUF_U32 : SHUF_U64,
                    .permutation = whole_row(algorithm, n, seed, epoch)}};
}

struct shuf__computation computation_shuffle(enum shuf_algorithm algorithm, uint64_t n,
                                             uint64_t seed, uint64_t epoch, uint64_t record)
{
    return (struct shuf__computation){
        .request = {
            .kind = SHUF__SHUFFLE,
            .shuffle = {.permutation = whole_row(algorithm, n, seed, epoch), .record = record},
        }};
}

struct shuf__computation computation_stream(enum shuf__distribution distribution, shuf_dtype dtype,
                                            uint64_t seed, uint64_t stream, uint64_t offset,
                                            uint64_t count)
{
    return (struct shuf__computation){.request = {.kind = SHUF__STREAM,
                                                  .dtype = dtype,
                                                  .stream = {.distribution = distribution,
                                                             .mean = 0,
                                                             .std = 1,
                                                             .seed = seed,
                                                             .stream = stream,
                                                             .offset = offset,
                                                             .count = count}}};
}

/* ---- The expected values of one row, by the inline algorithms ---- */

struct reference {
    const struct shuf__request *request;
    const struct shuf__permutation *p; /* NULL: a stream */
    shuf_primefold primefold;
    shuf_philox24 philox24;
    shuf_lcg lcg;
    /* The values of the first positions, if the algorithm leaves out outputs of n or more. NULL if
     * it leaves nothing out: then the value at a position is reference_forward(position). */
    uint64_t *values;
};

static uint64_t reference_forward(const struct reference *r, uint64_t x)
{
    switch (r->p->algorithm) {
    case SHUF_ALGORITHM_PRIMEFOLD:
        return shuf_primefold_forward(&r->primefold, x);
    case SHUF_ALGORITHM_PHILOX24:
        return shuf_philox24_forward(&r->philox24, x);
    case SHUF_ALGORITHM_LCG:
        return shuf_lcg_forward(&r->lcg, x);
    case SHUF_ALGORITHM_COUNT:
        break;
    }
    fail_msg("algorithm %d has no reference", (int)r->p->algorithm);
    return 0;
}

/* Returns m so that the request reaches only positions 0 to m - 1. */
static uint64_t position_limit(const struct shuf__permutation *p)
{
    uint64_t last = p->offset + (p->count - 1) * p->stride;
    return last < p->n ? last + 1 : p->n;
}

static struct reference reference_make(const struct shuf__computation *computation, uint64_t row)
{
    const struct shuf__permutation *p = shuf__request_permutation(&computation->request);
    struct reference r = {.request = &computation->request, .p = p};
    if (!p)
        return r;
    if (p->algorithm == SHUF_ALGORITHM_PRIMEFOLD) {
        r.primefold = shuf_primefold_make(p->n, p->seed, p->epoch + row);
        return r;
    }
    r.philox24 = shuf_philox24_make(p->n, p->seed, p->epoch + row);
    r.lcg = shuf_lcg_make(p->n, p->seed, p->epoch + row);
    if (p->n == UINT64_C(1) << shuf_domain_bits(p->n))
        return r;
    uint64_t seen = position_limit(p);
    r.values = malloc(seen * sizeof *r.values);
    assert_non_null(r.values);
    for (uint64_t x = 0, kept = 0; kept < seen; x++) {
        uint64_t y = reference_forward(&r, x);
        if (y < p->n)
            r.values[kept++] = y;
    }
    return r;
}

static uint64_t reference_stream_at(const struct shuf__request *request, uint64_t index)
{
    const struct shuf__stream *s = &request->stream;
    const struct draw draw = {s->distribution,   request->dtype, s->seed, s->stream,
                              s->offset + index, s->mean,        s->std,  s->bound};
    return draw_bits(&draw);
}

static uint64_t reference_at(const struct reference *r, uint64_t index)
{
    if (!r->p)
        return reference_stream_at(r->request, index);
    uint64_t position = (r->p->offset + index * r->p->stride) % r->p->n;
    return r->values ? r->values[position] : reference_forward(r, position);
}

uint64_t *computation_expected_values(const struct shuf__computation *computation)
{
    struct reference r = reference_make(computation, 0);
    const uint64_t count = shuf__request_shape(&computation->request).count;
    uint64_t *values = malloc(count * sizeof *values);
    assert_non_null(values);
    for (uint64_t i = 0; i < count; i++)
        values[i] = reference_at(&r, i);
    free(r.values);
    return values;
}

/* ---- Running ---- */

static void expect_ok(shuf_status status, const struct shuf__error *error)
{
    if (status != SHUF_OK)
        fail_msg("%s: %s", shuf_status_name(status), error->text);
}

void computation_alloc(uint64_t bytes, struct shuf__block *block)
{
    struct shuf__error error = {0};
    uint64_t units = (bytes + SHUF__BLOCK_UNIT - 1) / SHUF__BLOCK_UNIT;
    expect_ok(
        backend->ops->alloc(backend, computation_kind, units * SHUF__BLOCK_UNIT, block, &error),
        &error);
}

void computation_alloc_workspace(struct shuf__computation *computation,
                                 struct shuf__block *workspace)
{
    struct shuf__error error = {0};
    const struct shuf__workspace needs =
        backend->ops->workspace(backend, &computation->request, computation_kind);
    expect_ok(shuf__backend_alloc_workspace(backend, &needs, workspace, &error), &error);
    computation->workspace = workspace->memory ? workspace : NULL;
}

uint64_t computation_fill(const struct shuf__computation *computation, struct shuf__block *block)
{
    uint64_t ns = 0;
    struct shuf__error error = {0};
    expect_ok(shuf__backend_compute(backend, computation, block, &ns, &error), &error);
    return ns;
}

/* Fills the block with known values that no test expects: a slice of a permutation of the 32-bit
 * numbers. The backend must be able to write them. */
static struct shuf__computation poison_computation(uint64_t bytes)
{
    struct shuf__computation computation =
        computation_whole(SHUF_ALGORITHM_PHILOX24, UINT64_C(1) << 32, 0x6a09e667, 0xbb67ae85);
    computation.request.permutation.count = (bytes + 3) / 4;
    return computation;
}

static void check_guard(const struct shuf__block *block, uint64_t bytes)
{
    uint8_t guard[GUARD];
    struct shuf__error error = {0};
    struct shuf__computation poison = poison_computation(bytes + GUARD);
    struct reference r = reference_make(&poison, 0);
    expect_ok(backend->ops->read(backend, block, bytes, GUARD, guard, &error), &error);
    for (uint64_t i = 0; i < GUARD; i++)
        if (guard[i] != (uint8_t)(reference_at(&r, (bytes + i) / 4) >> (bytes + i) % 4 * 8))
            fail_msg("%" PRIu64 " bytes after the result's end were overwritten", i);
}

static uint64_t *read_values(const struct shuf__computation *computation,
                             const struct shuf__block *block)
{
    const uint64_t count = computation_value_count(computation);
    const unsigned width = computation_width(computation);
    struct shuf__error error = {0};
    uint64_t *values = malloc(count * sizeof *values + 1); /* never of size 0 */
    assert_non_null(values);
    expect_ok(backend->ops->read(backend, block, 0, count * width, values, &error), &error);
    for (uint64_t i = width < 8 ? count : 0; i-- > 0;) {
        /* widens the values in place; starts at the end, so no unread value is overwritten */
        uint64_t value = 0;
        memcpy(&value, (const char *)values + i * width, width);
        values[i] = value;
    }
    return values;
}

struct shuf__computation computation_of_bytes(uint64_t bytes)
{
    return computation_whole(SHUF_ALGORITHM_PHILOX24, bytes / 4, 3, 4);
}

void computation_fill_block(struct shuf__block *block)
{
    struct shuf__computation computation = computation_of_bytes(block->bytes);
    computation_fill(&computation, block);
}

void computation_check_block(const struct shuf__computation *computation,
                             const struct shuf__block *block)
{
    uint64_t sum, *expected = computation_expected_values(computation),
                  *values = read_values(computation, block);
    struct shuf__error error = {0};
    for (uint64_t i = 0; i < computation_value_count(computation); i++)
        if (values[i] != expected[i])
            fail_msg("value %" PRIu64 " is %" PRIu64, i, values[i]);
    expect_ok(backend->ops->fingerprint(backend, block, computation_width(computation),
                                        computation_value_count(computation), 0, &sum, &error),
              &error);
    free(values);
    free(expected);
}

bool computation_has_nonzero(const uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (bytes[i])
            return true;
    return false;
}

double computation_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void check_sums(const struct shuf__sums *sums, const struct shuf__sums *expected,
                       uint64_t count)
{
    const double most = fmax(fabs(expected->least), fabs(expected->largest)) + 1;
    for (int k = 0; k < 4; k++)
        if (isfinite(expected->power[k]) ? fabs(sums->power[k] - expected->power[k]) >
                                               1e-9 * (double)count * pow(most, k + 1)
                                         : isfinite(sums->power[k]))
            fail_msg("sum of powers %d: %.17g, expected %.17g", k + 1, sums->power[k],
                     expected->power[k]);
    assert_true(sums->least == expected->least && sums->largest == expected->largest);
}

/* A pass that stores nothing has the same fingerprint and sums; here its first value has another
 * index. */
static void check_pass(const struct shuf__computation *computation, const struct shuf__block *block,
                       const uint64_t *values)
{
    const uint64_t count = computation_value_count(computation), index = UINT64_C(5) << 40 | 3;
    const struct shuf__request *request = &computation->request;
    struct shuf__pass pass = {.index = index, .centre = 0.25, .scale = 0.5}, powers;
    uint64_t expected = 0;
    struct shuf__sums sums;
    struct shuf__error error = {0};
    if (count == 0 || !backend->ops->passes(&computation->request))
        return;
    for (uint64_t i = 0; i < count; i++)
        expected += shuf_fingerprint_term(index + i, values[i]);
    expect_ok(backend->ops->pass(backend, computation, &pass, &error), &error);
    assert_int_equal(pass.fingerprint, expected);
    if (request->kind != SHUF__STREAM)
        return;
    powers = pass;
    powers.moments = true;
    expect_ok(backend->ops->pass(backend, computation, &powers, &error), &error);
    assert_int_equal(powers.fingerprint, expected);
    expect_ok(backend->ops->sums(backend, block, request->dtype, count, pass.centre, pass.scale,
                                 &sums, &error),
              &error);
    check_sums(&powers.sums, &sums, count);
}

uint64_t *computation_run(const struct shuf__computation *computation, uint64_t *fingerprint)
{
    uint64_t bytes = computation_bytes(computation), sum = 0;
    struct shuf__block block;
    struct shuf__error error = {0};
    struct shuf__computation poison = poison_computation(bytes + GUARD);
    computation_alloc(bytes + GUARD, &block);
    computation_fill(&poison, &block);
    computation_fill(computation, &block);
    check_guard(&block, bytes);
    expect_ok(backend->ops->fingerprint(backend, &block, computation_width(computation),
                                        computation_value_count(computation), 0, &sum, &error),
              &error);
    uint64_t *values = read_values(computation, &block);
    assert_int_equal(sum, golden_fingerprint(values, computation_value_count(computation)));
    check_pass(computation, &block, values);
    backend->ops->free(backend, &block);
    if (fingerprint)
        *fingerprint = sum;
    return values;
}

void computation_check(const struct shuf__computation *computation)
{
    uint64_t *values = computation_run(computation, NULL);
    const struct shuf__shape shape = shuf__request_shape(&computation->request);
    char text[SHUF__REQUEST_TEXT];
    for (uint64_t row = 0; row < shape.rows && shape.count; row++) {
        struct reference r = reference_make(computation, row);
        for (uint64_t i = 0; i < shape.count; i++)
            if (values[row * shape.count + i] != reference_at(&r, i))
                fail_msg("%s, offset %" PRIu64 ", stride %" PRIu64 ", width %" PRIu64
                         ": row %" PRIu64 " value %" PRIu64 " is %" PRIu64 ", expected %" PRIu64,
                         shuf__request_describe(&computation->request, true, text),
                         r.p ? r.p->offset : computation->request.stream.offset,
                         r.p ? r.p->stride : 1, shape.width, row, i, values[row * shape.count + i],
                         reference_at(&r, i));
        free(r.values);
    }
    free(values);
}
