/* SPDX-License-Identifier: MIT
 *
 * shuf_chunks.h: the golden table; for random sizes, every value of the definition of docs/spec.md,
 * read naively; the order of equal chunks; refusals; interrupts, threads and fork().
 */
#include "support/cmocka_all.h"
#include "support/golden.h"
#include "support/random.h"
#include "support/sanitized.h"

#include "host/chunks.h"
#include "shuf.h"
#include "shuf/fingerprint.h"
#include "shuf/windowed.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHUNKS = 1024 };

static const struct shuf__computation nobody;

static void expect_ok(shuf_status status)
{
    if (status)
        fail_msg("%s", shuf_message(NULL));
}

static shuf_chunks *make(const shuf_chunks_request *request)
{
    shuf_chunks *chunks = NULL;
    expect_ok(shuf_chunks_make(request, &chunks));
    return chunks;
}

static uint64_t look_up(const shuf_chunks *chunks, shuf_direction direction, uint64_t at)
{
    uint64_t found;
    expect_ok(shuf_chunks_index(chunks, direction, 1, &at, 1, &found));
    return found;
}

/* ---- The golden table ---- */

static void check_whole(const shuf_chunks *chunks, uint64_t fingerprint, char *text)
{
    const uint64_t n = shuf_chunks_length(chunks);
    uint64_t *values = calloc(n, sizeof *values);
    expect_ok(shuf_chunks_fill(chunks, 0, n, 1, 1, SHUF_U64, values));
    assert_int_equal(golden_fingerprint(values, n), fingerprint);
    for (uint64_t i = 0; i < n; i++) {
        if (n > GOLDEN_WHOLE && i == GOLDEN_HEAD)
            i = n - GOLDEN_TAIL;
        assert_int_equal(values[i], golden_number(&text));
        assert_int_equal(look_up(chunks, SHUF_FORWARD, i), values[i]);
        assert_int_equal(look_up(chunks, SHUF_INVERSE, values[i]), i);
    }
    free(values);
}

static void check_single(const shuf_chunks *chunks, char *text)
{
    while (strpbrk(text, "0123456789")) {
        const uint64_t position = golden_number(&text), record = golden_number(&text);
        uint64_t value;
        expect_ok(shuf_chunks_fill(chunks, position, 1, 1, 1, SHUF_U64, &value));
        assert_int_equal(value, record);
        assert_int_equal(look_up(chunks, SHUF_FORWARD, position), record);
        assert_int_equal(look_up(chunks, SHUF_INVERSE, record), position);
    }
}

static void golden_table(void **state)
{
    (void)state;
    FILE *table = golden_open("chunks.txt");
    static uint64_t sizes[CHUNKS];
    unsigned rows = 0;
    for (char *text; (text = golden_line(table)); rows++) {
        shuf_chunks_request request = {.seed = golden_number(&text), .sizes = sizes};
        request.epoch = golden_number(&text);
        request.window = golden_number(&text);
        request.count = golden_number(&text);
        assert_in_range(request.count, 1, CHUNKS);
        for (size_t i = 0; i < request.count; i++)
            sizes[i] = golden_number(&text);
        shuf_chunks *chunks = make(&request);
        const uint64_t fingerprint = golden_number(&text);
        if (fingerprint)
            check_whole(chunks, fingerprint, text);
        else
            check_single(chunks, text);
        shuf_chunks_free(chunks);
    }
    fclose(table);
    assert_int_equal(rows, 41);
}

/* ---- The definition ---- */

/* A whole order, as a list of records, and one of their chunks. */
struct naive {
    uint64_t n, *record;
    uint32_t *chunk;
};

static uint64_t name_of(const shuf_chunks_request *r)
{
    uint64_t sum = 0;
    bool first_line = r->sizes[r->count - 1] <= r->sizes[0];
    for (size_t i = 0; i < r->count; i++) {
        sum += shuf_windows_term(i, r->sizes[i]);
        if (i + 1 < r->count && r->sizes[i] != r->sizes[0])
            first_line = false;
    }
    return first_line ? r->sizes[0] : (UINT64_C(1) << 63) + sum % (UINT64_C(1) << 63);
}

static uint64_t first_record(const shuf_chunks_request *r, uint64_t chunk)
{
    uint64_t first = 0;
    for (uint64_t i = 0; i < chunk; i++)
        first += r->sizes[i];
    return first;
}

/* Appends the window of the chunks number order(slot), ..., order(end - 1), shuffled. */
static void append_window(const shuf_chunks_request *r, const shuf_primefold *order, uint64_t slot,
                          uint64_t end, shuf_key key, uint64_t epoch, struct naive *naive)
{
    uint64_t count = 0, at = 0;
    for (uint64_t s = slot; s < end; s++)
        count += r->sizes[order ? shuf_primefold_forward(order, s) : s];
    uint64_t *record = malloc(count * sizeof *record);
    uint32_t *chunk = malloc(count * sizeof *chunk);
    for (uint64_t s = slot; s < end; s++) {
        const uint64_t k = order ? shuf_primefold_forward(order, s) : s;
        const uint64_t first = first_record(r, k);
        for (uint64_t i = 0; i < r->sizes[k]; i++, at++) {
            record[at] = first + i;
            chunk[at] = (uint32_t)k;
        }
    }
    const shuf_primefold inside = shuf_primefold_make_keyed(count, key, epoch);
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t x = shuf_primefold_forward(&inside, i);
        naive->record[naive->n] = record[x];
        naive->chunk[naive->n++] = chunk[x];
    }
    free(record);
    free(chunk);
}

static struct naive make_naive(const shuf_chunks_request *r)
{
    const uint64_t n = first_record(r, r->count);
    struct naive naive = {.record = malloc(n * sizeof *naive.record),
                          .chunk = malloc(n * sizeof *naive.chunk)};
    if (r->window >= r->count) {
        append_window(r, NULL, 0, r->count, shuf_key_of_seed(r->seed), r->epoch, &naive);
        return naive;
    }
    const shuf_philox4x64 counter = {{name_of(r), r->epoch, 6, n}};
    const shuf_philox4x64 words = shuf_philox4x64_10(counter, r->seed, 0);
    const shuf_key of_chunks = {{words.word[0], words.word[1]}};
    const shuf_key of_windows = {{words.word[2], words.word[3]}};
    const shuf_primefold order = shuf_primefold_make_keyed(r->count, of_chunks, 0);
    for (uint64_t slot = 0, j = 0; slot < r->count; slot += r->window, j++) {
        const uint64_t left = r->count - slot;
        append_window(r, &order, slot, slot + (left < r->window ? left : r->window), of_windows, j,
                      &naive);
    }
    assert_int_equal(naive.n, n);
    return naive;
}

static void free_naive(struct naive *naive)
{
    free(naive->record);
    free(naive->chunk);
}

/* ---- Random orders ---- */

/* Small ones, large ones, equal ones with another last one, and one large one among small ones. */
static void random_chunks(uint64_t *sizes, shuf_chunks_request *r)
{
    const uint64_t kind = random_below(5), most = random_size(TEST_SANITIZED ? 200 : 1000);
    r->sizes = sizes;
    r->seed = random_u64();
    r->epoch = random_u64();
    r->count = random_size(CHUNKS);
    r->window = random_below(8) ? random_size(r->count) : random_u64() | 1;
    for (size_t i = 0; i < r->count; i++)
        sizes[i] = kind == 0   ? 1
                   : kind == 1 ? most
                   : kind == 2 ? random_size(most)
                               : 1 + random_below(most);
    if (random_below(3) == 0)
        sizes[r->count - 1] = random_size(2 * most);
    if (kind == 4)
        sizes[random_below(r->count)] = 100000 + random_below(50000);
}

static const char *describe(const shuf_chunks_request *r)
{
    static char text[200];
    snprintf(text, sizeof text,
             "seed %" PRIu64 ", epoch %" PRIu64 ", %zu chunks from %" PRIu64 ", window %" PRIu64,
             r->seed, r->epoch, r->count, r->sizes[0], r->window);
    return text;
}

static struct shuf__chunks_range random_range(uint64_t n, uint64_t most)
{
    struct shuf__chunks_range range = {.first = random_below(n)};
    range.stride = random_below(2) ? 1 : random_size(n - range.first);
    range.count = (n - 1 - range.first) / range.stride + 1;
    if (random_below(2))
        range.count = range.count < most ? range.count : most;
    return range;
}

static void check_fill(const shuf_chunks_request *r, const shuf_chunks *chunks,
                       const struct naive *naive)
{
    const struct shuf__chunks_range range = random_range(naive->n, 3000);
    const bool narrow = random_below(2);
    const unsigned threads = 1 + (unsigned)random_below(3);
    uint64_t *values = calloc(range.count, sizeof *values);
    expect_ok(shuf_chunks_fill(chunks, range.first, range.count, range.stride, threads,
                               narrow ? SHUF_U32 : SHUF_I64, values));
    for (uint64_t i = 0; i < range.count; i++) {
        const uint64_t value = narrow ? ((uint32_t *)values)[i] : values[i];
        const uint64_t position = range.first + i * range.stride;
        if (value != naive->record[position])
            fail_msg("%s: position %" PRIu64 ": %" PRIu64 ", expected %" PRIu64, describe(r),
                     position, value, naive->record[position]);
    }
    free(values);
}

static void check_look_ups(const shuf_chunks_request *r, const shuf_chunks *chunks,
                           const struct naive *naive)
{
    enum { MOST = 1500 };
    static uint64_t position[MOST], found[MOST];
    const size_t count = random_size(MOST);
    for (size_t i = 0; i < count; i++)
        position[i] =
            random_below(4) && i ? (position[i - 1] + 1) % naive->n : random_below(naive->n);
    expect_ok(shuf_chunks_index(chunks, SHUF_FORWARD, 2, position, count, found));
    for (size_t i = 0; i < count; i++)
        if (found[i] != naive->record[position[i]])
            fail_msg("%s: record at %" PRIu64 ": %" PRIu64 ", expected %" PRIu64, describe(r),
                     position[i], found[i], naive->record[position[i]]);
    expect_ok(shuf_chunks_index(chunks, SHUF_INVERSE, 2, found, count, found));
    for (size_t i = 0; i < count; i++)
        if (found[i] != position[i])
            fail_msg("%s: position of %" PRIu64 ": %" PRIu64 ", expected %" PRIu64, describe(r),
                     naive->record[position[i]], found[i], position[i]);
}

static void check_needed(const shuf_chunks_request *r, const shuf_chunks *chunks,
                         const struct naive *naive)
{
    const struct shuf__chunks_range range = random_range(naive->n, 3000);
    const size_t most = range.count < r->count ? range.count : r->count;
    uint64_t *numbers = malloc(most * sizeof *numbers);
    bool *seen = calloc(r->count, sizeof *seen);
    size_t found, expected = 0;
    expect_ok(shuf_chunks_needed(chunks, range.first, range.count, range.stride, numbers, &found));
    for (uint64_t i = 0; i < range.count; i++) {
        const uint32_t chunk = naive->chunk[range.first + i * range.stride];
        if (seen[chunk])
            continue;
        seen[chunk] = true;
        if (expected >= found || numbers[expected] != chunk)
            fail_msg("%s: chunk %zu of %zu: %" PRIu64 ", expected %" PRIu32, describe(r), expected,
                     found, numbers[expected], chunk);
        expected++;
    }
    assert_int_equal(found, expected);
    free(numbers);
    free(seen);
}

/* The loops of each instruction set give the same records. */
static void check_loops(const shuf_chunks_request *r, const struct naive *naive)
{
    const struct shuf__chunks_request plan = {r->seed, r->epoch, r->sizes, r->count, r->window};
    const struct shuf__chunks_range range = random_range(naive->n, UINT64_MAX);
    const unsigned width = random_below(2) ? 4 : 8;
    char *values = calloc(range.count, width);
    for (size_t k = 0; k < SHUF__SIMD_SETS; k++) {
        const struct shuf__simd_ops *simd;
        struct shuf__chunks c;
        struct shuf__error error = {0};
        if (shuf__simd_choose(shuf__simd_names[k], &simd, &error))
            continue; /* this processor lacks the instructions */
        assert_int_equal(shuf__chunks_make(&c, simd, &plan, &nobody, &error), SHUF_OK);
        assert_int_equal(shuf__chunks_fill(&c, 1, &nobody, &range, width, values, &error), SHUF_OK);
        for (uint64_t i = 0; i < range.count; i++) {
            const uint64_t value = width == 4 ? ((uint32_t *)values)[i] : ((uint64_t *)values)[i];
            if (value != naive->record[range.first + i * range.stride])
                fail_msg("%s: %s: position %" PRIu64 ": %" PRIu64, shuf__simd_names[k], describe(r),
                         range.first + i * range.stride, value);
        }
        shuf__chunks_free(&c);
    }
    free(values);
}

static void random_orders_match(void **state)
{
    (void)state;
    random_start("random_orders_match");
    for (int i = 0; i < (TEST_SANITIZED ? 100 : 400); i++) {
        static uint64_t sizes[CHUNKS];
        shuf_chunks_request r;
        random_chunks(sizes, &r);
        struct naive naive = make_naive(&r);
        shuf_chunks *chunks = make(&r);
        assert_int_equal(shuf_chunks_length(chunks), naive.n);
        for (int k = 0; k < 3; k++) {
            check_fill(&r, chunks, &naive);
            check_look_ups(&r, chunks, &naive);
            check_needed(&r, chunks, &naive);
        }
        check_loops(&r, &naive);
        free_naive(&naive);
        shuf_chunks_free(chunks);
    }
}

/* ---- Large chunks ---- */

/* No list of all records fits the memory, but each step of the definition is a single number. */
static uint64_t naive_at(const shuf_chunks_request *r, uint64_t position)
{
    const shuf_philox4x64 counter = {{name_of(r), r->epoch, 6, first_record(r, r->count)}};
    const shuf_philox4x64 words = shuf_philox4x64_10(counter, r->seed, 0);
    const shuf_key of_chunks = {{words.word[0], words.word[1]}};
    const shuf_key of_windows = {{words.word[2], words.word[3]}};
    const shuf_primefold order = shuf_primefold_make_keyed(r->count, of_chunks, 0);
    for (uint64_t slot = 0, j = 0;; slot += r->window, j++) {
        const uint64_t end = slot + r->window < r->count ? slot + r->window : r->count;
        uint64_t count = 0;
        for (uint64_t s = slot; s < end; s++)
            count += r->sizes[shuf_primefold_forward(&order, s)];
        if (position >= count) {
            position -= count;
            continue;
        }
        const shuf_primefold inside = shuf_primefold_make_keyed(count, of_windows, j);
        uint64_t x = shuf_primefold_forward(&inside, position);
        for (uint64_t s = slot;; s++) {
            const uint64_t k = shuf_primefold_forward(&order, s);
            if (x < r->sizes[k])
                return first_record(r, k) + x;
            x -= r->sizes[k];
        }
    }
}

static void large_chunks_match(void **state)
{
    (void)state;
    random_start("large_chunks_match");
    for (int i = 0; i < (TEST_SANITIZED ? 60 : 300); i++) {
        enum { VALUES = 200 };
        static uint64_t sizes[64], values[VALUES];
        shuf_chunks_request r = {random_u64(), random_u64(), sizes, 2 + random_below(62), 0};
        const unsigned bits = 26 + (unsigned)random_below(31);
        for (size_t k = 0; k < r.count; k++)
            sizes[k] = random_below(3) ? random_size(UINT64_C(1) << bits)
                                       : (UINT64_C(1) << bits) - 3 + random_below(7);
        r.window = 1 + random_below(r.count - 1);
        shuf_chunks *chunks = make(&r);
        struct shuf__chunks_range range = random_range(shuf_chunks_length(chunks), VALUES);
        range.count = range.count < VALUES ? range.count : VALUES;
        const bool narrow = shuf_chunks_length(chunks) <= UINT64_C(1) << 32;
        expect_ok(shuf_chunks_fill(chunks, range.first, range.count, range.stride, 1,
                                   narrow ? SHUF_U32 : SHUF_U64, values));
        for (uint64_t k = range.count; narrow && k-- > 0;)
            values[k] = ((uint32_t *)values)[k];
        for (uint64_t k = 0; k < range.count; k++) {
            const uint64_t position = range.first + k * range.stride;
            if (values[k] != naive_at(&r, position))
                fail_msg("%s: position %" PRIu64 ": %" PRIu64, describe(&r), position, values[k]);
            assert_int_equal(look_up(chunks, SHUF_FORWARD, position), values[k]);
            assert_int_equal(look_up(chunks, SHUF_INVERSE, values[k]), position);
        }
        shuf_chunks_free(chunks);
    }
}

/* ---- Equal chunks ---- */

/* A list of equal sizes with a short rest gives the order of `chunk` in a shuf_permutation. */
static void equal_chunks_match(void **state)
{
    (void)state;
    random_start("equal_chunks_match");
    for (int i = 0; i < 100; i++) {
        static uint64_t sizes[CHUNKS], values[50000], expected[50000];
        const uint64_t n = 1 + random_below(50000);
        const uint64_t size = (n - 1) / (1 + random_below(CHUNKS - 1)) + 1;
        shuf_chunks_request r = {random_u64(), random_u64(), sizes, (n - 1) / size + 1, 0};
        for (size_t k = 0; k < r.count; k++)
            sizes[k] = k + 1 < r.count ? size : n - k * size;
        r.window = 1 + random_below(r.count + 2);
        const shuf_request request = {.permutation = {.n = n,
                                                      .seed = r.seed,
                                                      .epoch = r.epoch,
                                                      .chunk = size,
                                                      .window = r.window,
                                                      .dtype = SHUF_U64}};
        shuf_chunks *chunks = make(&r);
        expect_ok(shuf_chunks_fill(chunks, 0, n, 1, 1, SHUF_U64, values));
        expect_ok(shuf_host_fill(&request, 1, expected, sizeof expected));
        assert_memory_equal(values, expected, n * sizeof *values);
        shuf_chunks_free(chunks);
    }
}

/* ---- Refusals ---- */

static void expect_refused(shuf_status status, const char *message)
{
    assert_int_equal(status, SHUF_INVALID);
    assert_string_equal(shuf_message(NULL), message);
}

static void make_names_the_field(void **state)
{
    (void)state;
    const uint64_t good[] = {3, 5}, zero[] = {3, 0}, large[] = {UINT64_C(1) << 62, 1},
                   huge[] = {UINT64_MAX, UINT64_MAX};
    shuf_chunks *chunks = (shuf_chunks *)&chunks;
    expect_refused(shuf_chunks_make(&(shuf_chunks_request){.window = 1, .count = 1}, &chunks),
                   "sizes NULL: expected the sizes of the chunks");
    assert_null(chunks);
    expect_refused(shuf_chunks_make(&(shuf_chunks_request){.sizes = good, .window = 1}, &chunks),
                   "sizes: 0 of them, expected 1 to 2^24");
    expect_refused(
        shuf_chunks_make(&(shuf_chunks_request){.sizes = good, .window = 1, .count = (1 << 24) + 1},
                         &chunks),
        "sizes: 16777217 of them, expected 1 to 2^24");
    expect_refused(shuf_chunks_make(&(shuf_chunks_request){.sizes = good, .count = 2}, &chunks),
                   "window 0: expected at least 1");
    expect_refused(
        shuf_chunks_make(&(shuf_chunks_request){.sizes = zero, .count = 2, .window = 1}, &chunks),
        "sizes[1] 0: expected at least 1");
    expect_refused(
        shuf_chunks_make(&(shuf_chunks_request){.sizes = large, .count = 2, .window = 1}, &chunks),
        "sizes[1] 1: expected at most 0, because all chunks together have at most 2^62 records");
    expect_refused(
        shuf_chunks_make(&(shuf_chunks_request){.sizes = huge, .count = 2, .window = 3}, &chunks),
        "sizes[0] 18446744073709551615: expected at most 4611686018427387904, because all chunks "
        "together have at most 2^62 records");
}

static void calls_name_the_field(void **state)
{
    (void)state;
    const uint64_t sizes[] = {3, 5, 2}, large[] = {UINT64_C(1) << 32, 1};
    const uint64_t at[] = {9, 10};
    uint64_t out[2];
    shuf_chunks *chunks = make(&(shuf_chunks_request){.sizes = sizes, .count = 3, .window = 2});
    expect_refused(shuf_chunks_fill(chunks, 10, 1, 1, 1, SHUF_U64, out),
                   "first 10: expected less than the length, 10");
    expect_refused(shuf_chunks_fill(chunks, 1, 4, 3, 1, SHUF_U64, out),
                   "count 4: expected at most 3 from position 1 on with stride 3, because the "
                   "length is 10");
    expect_refused(shuf_chunks_fill(chunks, 0, 1, 0, 1, SHUF_U64, out),
                   "stride 0: expected at least 1");
    expect_refused(shuf_chunks_fill(chunks, 0, 1, 1, 1, SHUF_F64, out),
                   "dtype f64: expected u32, u64 or i64");
    expect_refused(shuf_chunks_index(chunks, SHUF_FORWARD, 1, at, 2, out),
                   "at[1] 10: expected less than the length, 10");
    expect_refused(shuf_chunks_index(chunks, (shuf_direction)7, 1, at, 1, out),
                   "direction 7: expected FORWARD or INVERSE");
    expect_refused(shuf_chunks_needed(chunks, 10, 1, 1, out, &(size_t){0}),
                   "first 10: expected less than the length, 10");
    expect_ok(shuf_chunks_fill(chunks, 10, 0, 1, 1, SHUF_U64, out));
    shuf_chunks_free(chunks);
    chunks = make(&(shuf_chunks_request){.sizes = large, .count = 2, .window = 1});
    expect_refused(shuf_chunks_fill(chunks, 0, 1, 1, 1, SHUF_U32, out),
                   "length 4294967297: does not fit u32; expected dtype u64");
    shuf_chunks_free(chunks);
}

/* ---- Interrupts, threads and fork() ---- */

static int asked;

static bool interrupt(void)
{
    return ++asked > 1;
}

static void calls_are_interruptible(void **state)
{
    (void)state;
    enum { MANY = 1 << 18 };
    uint64_t *sizes = malloc(MANY * sizeof *sizes), *out = malloc(MANY * sizeof *out);
    size_t found;
    for (size_t i = 0; i < MANY; i++)
        sizes[i] = 1 + i % 3;
    const shuf_chunks_request request = {.sizes = sizes, .count = MANY, .window = 16};
    shuf_chunks *chunks = make(&request), *other;
    for (size_t i = 0; i < MANY; i++)
        out[i] = i;
    shuf_set_interrupt(interrupt);
    asked = 0;
    assert_int_equal(shuf_chunks_make(&request, &other), SHUF_CANCELLED);
    assert_null(other);
    asked = 0;
    assert_int_equal(shuf_chunks_index(chunks, SHUF_INVERSE, 1, out, MANY, out), SHUF_CANCELLED);
    asked = 0;
    assert_int_equal(shuf_chunks_fill(chunks, 0, MANY, 1, 1, SHUF_U64, out), SHUF_CANCELLED);
    asked = 0;
    assert_int_equal(shuf_chunks_needed(chunks, 0, MANY, 1, out, &found), SHUF_CANCELLED);
    shuf_set_interrupt(NULL);
    shuf_chunks_free(chunks);
    free(sizes);
    free(out);
}

enum { SHARED = 100000 };
static uint32_t shared[SHARED];

static void *read_shared(void *chunks)
{
    uint32_t *values = malloc(sizeof shared);
    bool is_same = true;
    for (uint64_t first = 0; first < SHARED; first += 777) {
        const size_t count = SHARED - first < 777 ? SHARED - first : 777;
        is_same &= shuf_chunks_fill(chunks, first, count, 1, 1, SHUF_U32, values) == SHUF_OK &&
                   memcmp(values, shared + first, count * sizeof *values) == 0;
        is_same &= look_up(chunks, SHUF_INVERSE, shared[first]) == first;
    }
    free(values);
    return is_same ? chunks : NULL;
}

static void threads_and_children_share_one(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    uint64_t sizes[100];
    pthread_t thread[THREADS];
    void *result;
    int status;
    for (size_t i = 0; i < 100; i++)
        sizes[i] = 505 + 10 * i;
    shuf_chunks *chunks =
        make(&(shuf_chunks_request){.seed = 7, .sizes = sizes, .count = 100, .window = 8});
    assert_int_equal(shuf_chunks_length(chunks), SHARED);
    expect_ok(shuf_chunks_fill(chunks, 0, SHARED, 1, 4, SHUF_U32, shared));
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, read_shared, chunks), 0);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], &result);
        assert_ptr_equal(result, chunks);
    }
    const pid_t child = fork();
    if (child == 0)
        _exit(read_shared(chunks) == chunks ? 0 : 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    shuf_chunks_free(chunks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_table),
        cmocka_unit_test(random_orders_match),
        cmocka_unit_test(large_chunks_match),
        cmocka_unit_test(equal_chunks_match),
        cmocka_unit_test(make_names_the_field),
        cmocka_unit_test(calls_name_the_field),
        cmocka_unit_test(calls_are_interruptible),
        cmocka_unit_test(threads_and_children_share_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
