/* SPDX-License-Identifier: MIT
 *
 * The same request on each instruction set of the CPU backend: every value equals that of the
 * inline C, which is evaluated here in a plain loop.
 */
#include "backend.h"
#include "fuzz.h"
#include "shuf/lcg.h"
#include "shuf/philox24.h"
#include "shuf/primefold.h"
#include "simd/simd_ops.h"
#include "support/draws.h"
#include "support/golden.h"

#include <inttypes.h>
#include <stdbool.h>

enum {
    SETS = SHUF__SIMD_SETS,
    VALUES = 700,        /* of a request */
    COMPACTED_N = 17000, /* the plain loop evaluates the whole domain */
    PLACES = 24,
    SHUFFLED = 700,
    RECORD = 40,
};

static struct shuf__backend *sets[SETS]; /* NULL: this processor lacks the instructions */

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    for (int i = 0; i < SETS; i++) {
        struct shuf__error error = {0};
        if (shuf__cpu_ops.open(shuf__simd_names[i], 1, &sets[i], &error))
            fprintf(stderr, "left out: %s\n", error.text);
    }
    return sets[SETS - 1] == NULL;
}

/* ---- The expected values ---- */

struct row {
    const struct shuf__permutation *p;
    shuf_primefold primefold;
    shuf_philox24 philox24;
    shuf_lcg lcg;
    uint64_t *values; /* all values of a compacted row, which is small */
};

static uint64_t evaluate(const struct row *row, uint64_t x)
{
    switch (row->p->algorithm) {
    case SHUF_ALGORITHM_PRIMEFOLD:
        return shuf_primefold_forward(&row->primefold, x);
    case SHUF_ALGORITHM_PHILOX24:
        return shuf_philox24_forward(&row->philox24, x);
    default:
        return shuf_lcg_forward(&row->lcg, x);
    }
}

static struct row make_row(const struct shuf__permutation *p, uint64_t number)
{
    static uint64_t values[COMPACTED_N];
    const uint64_t epoch = p->epoch + number;
    struct row row = {.p = p};
    if (p->algorithm == SHUF_ALGORITHM_PRIMEFOLD) {
        row.primefold = shuf_primefold_make(p->n, p->seed, epoch);
        return row;
    }
    row.philox24 = shuf_philox24_make(p->n, p->seed, epoch);
    row.lcg = shuf_lcg_make(p->n, p->seed, epoch);
    if (p->n == UINT64_C(1) << shuf_domain_bits(p->n))
        return row;
    fuzz_require(p->n <= COMPACTED_N);
    for (uint64_t x = 0, kept = 0; kept < p->n; x++)
        if ((values[kept] = evaluate(&row, x)) < p->n)
            kept++;
    row.values = values;
    return row;
}

static uint64_t value_at(const struct row *row, uint64_t position)
{
    return row->values ? row->values[position] : evaluate(row, position);
}

static void fill_permutation(const struct shuf__permutation *p, uint64_t count, uint64_t *out)
{
    for (uint64_t number = 0; number < p->rows; number++) {
        const struct row row = make_row(p, number);
        for (uint64_t i = 0; i < count; i++)
            *out++ =
                value_at(&row, (uint64_t)(((unsigned __int128)i * p->stride + p->offset) % p->n));
    }
}

static void fill_stream(const struct shuf__request *request, uint64_t *out)
{
    const struct shuf__stream *s = &request->stream;
    for (uint64_t i = 0; i < s->count; i++) {
        const struct draw draw = {s->distribution, request->dtype, s->seed, s->stream,
                                  s->offset + i,   s->mean,        s->std,  s->bound};
        *out++ = draw_bits(&draw);
    }
}

/* ---- The backends ---- */

static void fail(const struct shuf__request *request, int set, const char *what, uint64_t index,
                 uint64_t is, uint64_t expected)
{
    char text[SHUF__REQUEST_TEXT];
    fprintf(stderr, "%s on %s: %s %" PRIu64 " is %" PRIu64 ", expected %" PRIu64 "\n",
            shuf__request_describe(request, true, text), shuf__simd_names[set], what, index, is,
            expected);
    abort();
}

static void require_ok(shuf_status status, const struct shuf__error *error)
{
    if (status == SHUF_OK)
        return;
    fprintf(stderr, "%s: %s\n", shuf_status_name(status), error->text);
    abort();
}

/* Memory of exactly the needed size, so AddressSanitizer finds a write beyond its end. */
static struct shuf__block make_block(uint64_t bytes)
{
    void *memory = NULL;
    fuzz_require(posix_memalign(&memory, 4096, bytes + (bytes == 0)) == 0);
    memset(memory, 0x5a, bytes);
    return (struct shuf__block){
        .kind = SHUF__MEMORY_PRIVATE, .memory = memory, .host = memory, .bytes = bytes, .fd = -1};
}

static void compute(int set, const struct shuf__request *request, const struct shuf__block *input,
                    struct shuf__block *block)
{
    struct shuf__error error = {0};
    uint64_t ns;
    const struct shuf__computation computation = {.request = *request, .input = input};
    require_ok(shuf__backend_compute(sets[set], &computation, block, &ns, &error), &error);
}

static void check_values(int set, const struct shuf__request *request, const uint64_t *expected,
                         const struct shuf__shape *shape)
{
    struct shuf__block block = make_block(shape->bytes);
    struct shuf__error error = {0};
    const uint64_t count = shape->rows * shape->count;
    uint64_t fingerprint = 0;
    compute(set, request, NULL, &block);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t value = 0;
        memcpy(&value, (const char *)block.memory + i * shape->width, shape->width);
        if (value != expected[i])
            fail(request, set, "value", i, value, expected[i]);
    }
    require_ok(shuf__cpu_ops.fingerprint(sets[set], &block, (unsigned)shape->width, count, 0,
                                         &fingerprint, &error),
               &error);
    if (fingerprint != golden_fingerprint(expected, count))
        fail(request, set, "fingerprint", 0, fingerprint, golden_fingerprint(expected, count));
    free(block.memory);
}

static void check_result(const struct shuf__request *request)
{
    static uint64_t expected[VALUES];
    const struct shuf__shape shape = shuf__request_shape(request);
    if (shape.count > VALUES || shape.rows > VALUES || shape.rows * shape.count > VALUES)
        return;
    if (request->kind == SHUF__STREAM)
        fill_stream(request, expected);
    else
        fill_permutation(&request->permutation, shape.count, expected);
    for (int set = 0; set < SETS; set++)
        if (sets[set])
            check_values(set, request, expected, &shape);
}

/* ---- The requests ---- */

/* The plain loop is slow for algorithms that leave values out, so their domains are small. */
static struct shuf__permutation take_permutation(struct fuzz_bytes *bytes)
{
    struct shuf__permutation p = {.algorithm =
                                      (enum shuf_algorithm)(fuzz_u8(bytes) % SHUF_ALGORITHM_COUNT)};
    p.n = 1 + fuzz_number(bytes, SHUF__N_MAX - 1);
    const bool is_power = (p.n & (p.n - 1)) == 0;
    if (p.algorithm != SHUF_ALGORITHM_PRIMEFOLD && !is_power && p.n > COMPACTED_N)
        p.n = fuzz_u8(bytes) % 2 ? UINT64_C(1) << shuf_domain_bits(p.n % SHUF__N_MAX / 2 + 1)
                                 : 1 + p.n % COMPACTED_N;
    p.seed = fuzz_number(bytes, UINT64_MAX);
    p.epoch = fuzz_number(bytes, UINT64_MAX);
    return p;
}

static struct shuf__view take_view(struct fuzz_bytes *bytes, uint64_t n)
{
    struct shuf__view view = {.kind = (enum shuf__view_kind)(fuzz_u8(bytes) % 3)};
    if (view.kind == SHUF__VIEW_ALL && n > VALUES)
        view.kind = SHUF__VIEW_SLICE;
    if (view.kind == SHUF__VIEW_SLICE) {
        view.offset = fuzz_number(bytes, n - 1);
        view.stride = 1 + fuzz_number(bytes, n - 1);
        const uint64_t most = (n - 1 - view.offset) / view.stride;
        view.count = 1 + fuzz_number(bytes, most < VALUES ? most : VALUES - 1);
    } else if (view.kind == SHUF__VIEW_SHARD) {
        view.world = 1 + fuzz_number(bytes, SHUF__N_MAX);
        view.rank = fuzz_number(bytes, view.world - 1);
        view.step = fuzz_number(bytes, n / view.world);
        view.count = fuzz_number(bytes, VALUES);
        view.drop_last = fuzz_u8(bytes) % 2;
    }
    return view;
}

static void permute(struct fuzz_bytes *bytes)
{
    struct shuf__request request = {.kind = SHUF__PERMUTATION};
    struct shuf__error error = {0};
    request.permutation = take_permutation(bytes);
    request.permutation.rows = 1 + fuzz_u8(bytes) % 3;
    request.dtype = (shuf_dtype)(fuzz_u8(bytes) % 4);
    const struct shuf__view view = take_view(bytes, request.permutation.n);
    if (shuf__permutation_make(&request, &view, &error) == SHUF_OK)
        check_result(&request);
}

static double take_double(struct fuzz_bytes *bytes)
{
    const uint64_t bits = fuzz_u64(bytes);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void stream(struct fuzz_bytes *bytes)
{
    struct shuf__request request = {.kind = SHUF__STREAM};
    struct shuf__error error = {0};
    struct shuf__stream *s = &request.stream;
    s->distribution = (enum shuf__distribution)(1 + fuzz_u8(bytes) % (SHUF_DISTRIBUTION_COUNT - 1));
    request.dtype = (shuf_dtype)(fuzz_u8(bytes) % SHUF__DTYPES);
    s->seed = fuzz_number(bytes, UINT64_MAX);
    s->stream = fuzz_number(bytes, UINT64_MAX);
    s->count = 1 + fuzz_number(bytes, VALUES - 1);
    s->offset = fuzz_number(bytes, SHUF__N_MAX - s->count);
    const bool is_plain = fuzz_u8(bytes) % 2;
    draw_parameters(s->distribution, 1, &s->mean, &s->std, &s->bound);
    if (!is_plain && s->bound != 0)
        s->bound = fuzz_number(bytes, UINT64_MAX);
    if (!is_plain && shuf__distribution_has_mean(s->distribution))
        s->mean = take_double(bytes);
    if (!is_plain && shuf__distribution_is_normal(s->distribution))
        s->std = take_double(bytes);
    if (shuf__stream_make(&request, &error) == SHUF_OK)
        check_result(&request);
}

static void check_shuffled(int set, const struct shuf__request *request, const uint64_t *values)
{
    const struct shuf__shuffle *s = &request->shuffle;
    const uint64_t size = s->permutation.n * s->record;
    struct shuf__block in = make_block(size), out = make_block(size);
    for (uint64_t i = 0; i < size; i++)
        ((uint8_t *)in.memory)[i] = (uint8_t)(i * 167 + i / s->record);
    compute(set, request, &in, &out);
    for (uint64_t i = 0; i < s->permutation.n; i++) {
        const uint64_t from = s->inverse ? i : values[i], to = s->inverse ? values[i] : i;
        if (memcmp((const char *)out.memory + to * s->record,
                   (const char *)in.memory + from * s->record, s->record) != 0)
            fail(request, set, "record", to, UINT64_MAX, from);
    }
    free(in.memory);
    free(out.memory);
}

static void shuffle(struct fuzz_bytes *bytes)
{
    static uint64_t values[SHUFFLED];
    struct shuf__request request = {.kind = SHUF__SHUFFLE};
    struct shuf__error error = {0};
    request.shuffle.permutation = take_permutation(bytes);
    request.shuffle.permutation.n = 1 + request.shuffle.permutation.n % SHUFFLED;
    request.shuffle.record = 1 + fuzz_number(bytes, RECORD - 1);
    request.shuffle.inverse = fuzz_u8(bytes) % 2;
    require_ok(shuf__shuffle_make(&request, &error), &error);
    fill_permutation(&request.shuffle.permutation, request.shuffle.permutation.n, values);
    for (int set = 0; set < SETS; set++)
        if (sets[set])
            check_shuffled(set, &request, values);
}

static void check_look_up(int set, struct shuf__request request, const uint64_t *places,
                          size_t count)
{
    uint64_t found[PLACES];
    struct shuf__error error = {0};
    struct shuf__computation computation = {.request = request};
    memcpy(found, places, count * sizeof *found);
    require_ok(shuf__cpu_ops.look_up(sets[set], &computation, found, count, &error), &error);
    const struct row row = make_row(&request.look_up.permutation, 0);
    for (size_t i = 0; i < count; i++) {
        const uint64_t expected = value_at(&row, places[i]);
        if (found[i] != expected)
            fail(&request, set, "look-up", i, found[i], expected);
    }
    computation.request.look_up.inverse = true;
    require_ok(shuf__cpu_ops.look_up(sets[set], &computation, found, count, &error), &error);
    for (size_t i = 0; i < count; i++)
        if (found[i] != places[i])
            fail(&computation.request, set, "look-up", i, found[i], places[i]);
}

/* A domain of more than one tile would need a rank index. */
static void look_up(struct fuzz_bytes *bytes)
{
    uint64_t places[PLACES];
    struct shuf__request request = {.kind = SHUF__LOOK_UP};
    struct shuf__error error = {0};
    struct shuf__permutation *p = &request.look_up.permutation;
    *p = take_permutation(bytes);
    if (p->algorithm != SHUF_ALGORITHM_PRIMEFOLD && (p->n & (p->n - 1)) != 0)
        p->n = 1 + p->n % 16384;
    const size_t count = 1 + fuzz_u8(bytes) % PLACES;
    for (size_t i = 0; i < count; i++)
        places[i] = fuzz_number(bytes, p->n - 1);
    require_ok(shuf__look_up_make(&request, places, count, &error), &error);
    for (int set = 0; set < SETS; set++)
        if (sets[set])
            check_look_up(set, request, places, count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const kinds[])(struct fuzz_bytes *) = {permute, permute, stream,
                                                         stream,  shuffle, look_up};
    struct fuzz_bytes bytes = {data, size};
    kinds[fuzz_u8(&bytes) % (sizeof kinds / sizeof *kinds)](&bytes);
    return 0;
}
