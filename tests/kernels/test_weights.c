/* SPDX-License-Identifier: MIT
 *
 * shuf_weights.h: the golden tables; for random weights, the law that the table has, draws in any
 * order, and samples by a plain sort; refusals.
 */
#include "support/cmocka_all.h"
#include "support/golden.h"
#include "support/random.h"
#include "support/sanitized.h"

#include "host/weights.h"
#include "shuf.h"
#include "shuf/box_muller.h"
#include "shuf/uniform.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#ifdef __x86_64__
#include <xmmintrin.h>
#endif

#define END (UINT64_C(1) << 62)
enum { MOST = TEST_SANITIZED ? 1 << 12 : 1 << 16 };

static const struct shuf__computation nobody;

static void expect_ok(shuf_status status)
{
    if (status)
        fail_msg("%s", shuf_message(NULL));
}

static shuf_weights *make(const void *values, shuf_dtype type, uint64_t count)
{
    shuf_weights *weights = NULL;
    expect_ok(shuf_weights_make(values, type, count, &weights));
    return weights;
}

static struct shuf__weight_table make_table(const void *values, shuf_dtype type, uint64_t count)
{
    const struct shuf__weight_array array = {values, type, count};
    struct shuf__weight_table table;
    struct shuf__error error = {0};
    if (shuf__weight_table_make(&table, &array, &nobody, &error))
        fail_msg("%s", error.text);
    return table;
}

/* ---- The golden table ---- */

struct row {
    shuf_dtype type;
    uint64_t seed, epoch, count;
    union {
        uint64_t wide[512];
        uint32_t narrow[512];
    } weights;
};

static void read_row(char **text, struct row *row)
{
    const char *name = strsep(text, " ");
    row->type = strcmp(name, "f64") == 0 ? SHUF_F64 : *name == 'f' ? SHUF_F32 : SHUF_U64;
    row->seed = golden_number(text);
    row->epoch = golden_number(text);
    row->count = golden_number(text);
    assert_in_range(row->count, 1, 512);
    for (uint64_t i = 0; i < row->count; i++) {
        const uint64_t bits = golden_number(text);
        if (row->type == SHUF_F32)
            row->weights.narrow[i] = (uint32_t)bits;
        else
            row->weights.wide[i] = bits;
    }
}

static void check_columns(char **text, const struct row *row)
{
    struct shuf__weight_table table = make_table(&row->weights, row->type, row->count);
    assert_int_equal(golden_number(text), UINT64_C(1) << table.bits);
    for (uint64_t i = 0; i < UINT64_C(1) << table.bits; i++) {
        assert_int_equal(table.column[i] >> table.bits, golden_number(text));
        assert_int_equal(table.column[i] & ((UINT64_C(1) << table.bits) - 1), golden_number(text));
    }
    shuf__weight_table_free(&table);
}

/* One draw by a call of its own, and by one of many draws before and after it. */
static void check_draw(const shuf_weights *weights, const struct row *row, uint64_t i,
                       uint64_t draw)
{
    const uint64_t before = i < 1000 ? i : 1000, left = END - i;
    const uint64_t count = before + (left < 1000 ? left : 1000);
    uint64_t single, range[2000];
    expect_ok(shuf_weights_draw(weights, row->seed, row->epoch, i, 1, 1, 1, &single));
    expect_ok(shuf_weights_draw(weights, row->seed, row->epoch, i - before, count, 1, 1, range));
    if (single != draw || range[before] != draw)
        fail_msg("draw %" PRIu64 ": single %" PRIu64 ", in a range %" PRIu64 ", expected %" PRIu64,
                 i, single, range[before], draw);
}

static void golden_table(void **state)
{
    (void)state;
    FILE *file = golden_open("weights.txt");
    unsigned rows = 0;
    for (char *text; (text = golden_line(file)); rows++) {
        static struct row row;
        read_row(&text, &row);
        check_columns(&text, &row);
        shuf_weights *weights = make(&row.weights, row.type, row.count);
        while (strpbrk(text, "0123456789")) {
            const uint64_t i = golden_number(&text);
            check_draw(weights, &row, i, golden_number(&text));
        }
        shuf_weights_free(weights);
    }
    fclose(file);
    assert_int_equal(rows, 14);
}

static void sample(const void *values, shuf_dtype type, uint64_t count, uint64_t seed,
                   uint64_t epoch, size_t size, uint64_t *out)
{
    expect_ok(shuf_weights_sample(values, type, count, seed, epoch, size, out));
}

static void golden_samples(void **state)
{
    (void)state;
    FILE *file = golden_open("weighted_samples.txt");
    unsigned rows = 0;
    for (char *text; (text = golden_line(file)); rows++) {
        static struct row row;
        uint64_t expected[512], out[512];
        read_row(&text, &row);
        const uint64_t count = golden_number(&text);
        for (uint64_t i = 0; i < count; i++)
            expected[i] = golden_number(&text);
        for (uint64_t size = 0; size <= count; size++) {
            sample(&row.weights, row.type, row.count, row.seed, row.epoch, size, out);
            assert_memory_equal(out, expected, size * sizeof *out);
        }
        assert_int_equal(shuf_weights_sample(&row.weights, row.type, row.count, row.seed, row.epoch,
                                             count + 1, out),
                         SHUF_INVALID);
    }
    fclose(file);
    assert_int_equal(rows, 14);
}

/* ---- The law ---- */

/* Weights below 2^24: some equal, some 0, or of all sizes. */
static void random_weights(uint64_t *weight, uint64_t count)
{
    const uint64_t kind = random_below(4);
    for (uint64_t i = 0; i < count; i++) {
        weight[i] = kind == 0 ? 1 : kind == 1 ? random_below(1 << 24) : random_size(1 << 24);
        if (kind == 3 && random_below(2))
            weight[i] = 0;
    }
    weight[random_below(count)] = 1 + random_below(1 << 20);
}

/* The words of 63 bits with which each index is drawn. */
static void law_of(const struct shuf__weight_table *table, uint64_t *law)
{
    const uint64_t columns = UINT64_C(1) << table->bits, full = shuf_weights_full(table->bits);
    memset(law, 0, columns * sizeof *law);
    for (uint64_t i = 0; i < columns; i++) {
        const uint64_t threshold = table->column[i] >> table->bits;
        assert_in_range(threshold, 0, full);
        law[i] += threshold;
        law[table->column[i] & (columns - 1)] += full - threshold;
    }
}

/* Each probability is off by less than 2^-60, and that of a weight of 0 is 0. */
static void law_is_exact(void **state)
{
    (void)state;
    random_start("law_is_exact");
    static uint64_t weight[MOST], law[MOST];
    for (int round = 0; round < 200; round++) {
        const uint64_t count = random_size(MOST);
        uint64_t sum = 0, columns;
        random_weights(weight, count);
        struct shuf__weight_table table = make_table(weight, SHUF_U64, count);
        law_of(&table, law);
        columns = UINT64_C(1) << table.bits;
        shuf__weight_table_free(&table);
        for (uint64_t i = 0; i < count; i++)
            sum += weight[i];
        for (uint64_t i = 0; i < columns; i++) {
            const shuf__u128 exact = i < count ? (shuf__u128)weight[i] << 63 : 0;
            const shuf__u128 found = (shuf__u128)law[i] * sum;
            const shuf__u128 error = found > exact ? found - exact : exact - found;
            if (error >= (shuf__u128)sum * 8 || (exact == 0 && law[i]))
                fail_msg("weight %" PRIu64 " of %" PRIu64 ": %" PRIu64 ", sum %" PRIu64
                         ": drawn for %" PRIu64 " words of 2^63",
                         i, count, weight[i], sum, law[i]);
        }
    }
}

/* Numbers of another type, and numbers that are all scaled by one power of two, are the same
 * weights. */
static void types_agree(void **state)
{
    (void)state;
    random_start("types_agree");
    static uint64_t weight[MOST];
    static double wide[MOST];
    static float narrow[MOST];
    for (int round = 0; round < 30; round++) {
        const uint64_t count = random_size(MOST);
        const int exponent = (int)random_below(2000) - 1024;
        random_weights(weight, count);
        for (uint64_t i = 0; i < count; i++) {
            narrow[i] = (float)weight[i];
            wide[i] = ldexp((double)weight[i], exponent);
        }
        struct shuf__weight_table of[] = {make_table(weight, SHUF_U64, count),
                                          make_table(wide, SHUF_F64, count),
                                          make_table(narrow, SHUF_F32, count)};
        for (int i = 0; i < 3; i++) {
            assert_memory_equal(of[i].column, of[0].column, 8 << of[0].bits);
            if (i > 0)
                shuf__weight_table_free(&of[i]);
        }
        shuf__weight_table_free(&of[0]);
    }
}

#ifdef __x86_64__
/* A thread that flushes subnormal numbers makes the same table, and refuses the same weights. */
static void flushed_weights_count(void **state)
{
    (void)state;
    const float weight[] = {1e-40f, 3e-40f, 1.1e-38f, 1.2e-38f}, negative[] = {1, -1e-40f};
    const unsigned kept = _mm_getcsr();
    struct shuf__weight_table plain = make_table(weight, SHUF_F32, 4);
    shuf_weights *weights;
    _mm_setcsr(kept | 0x8040);
    struct shuf__weight_table flushed = make_table(weight, SHUF_F32, 4);
    const shuf_status refusal = shuf_weights_make(negative, SHUF_F32, 2, &weights);
    _mm_setcsr(kept);
    assert_memory_equal(flushed.column, plain.column, 4 * sizeof *plain.column);
    assert_int_equal(refusal, SHUF_INVALID);
    shuf__weight_table_free(&flushed);
    shuf__weight_table_free(&plain);
}
#endif

/* ---- Draws ---- */

/* All ways to read a draw agree with the inline functions. */
static void any_draw_comes_first(void **state)
{
    (void)state;
    random_start("any_draw_comes_first");
    static uint64_t weight[MOST], out[300000];
    for (int round = 0; round < 60; round++) {
        const uint64_t n = random_size(MOST), seed = random_u64(), epoch = random_u64();
        const uint64_t count = random_size(round % 10 ? 5000 : 300000);
        const uint64_t stride = random_below(2) ? 1 : random_size(UINT64_C(1) << 40);
        const uint64_t first = random_below(END - (count - 1) * stride);
        random_weights(weight, n);
        struct shuf__weight_table table = make_table(weight, SHUF_U64, n);
        shuf_weights *weights = make(weight, SHUF_U64, n);
        expect_ok(shuf_weights_draw(weights, seed, epoch, first, count, stride,
                                    (unsigned)(1 + random_below(3)), out));
        const shuf_stream words =
            shuf_stream_make(shuf_key_of_seed(seed), epoch, SHUF_STREAM_WEIGHTED);
        for (uint64_t i = 0; i < count; i++) {
            const uint64_t word = shuf_uniform_u64(&words, first + i * stride);
            assert_int_equal(out[i], shuf_weights_draw_of(table.column, table.bits, word));
            assert_in_range(out[i], 0, n - 1);
            assert_int_not_equal(weight[out[i]], 0);
        }
        shuf_weights_free(weights);
        shuf__weight_table_free(&table);
    }
}

/* Chi-squared of 2^20 draws; its limit is 6 standard deviations. */
static void draws_follow_the_weights(void **state)
{
    (void)state;
    random_start("draws_follow_the_weights");
    enum { N = 1000, DRAWS = 1 << 20 };
    static uint64_t weight[N], seen[N], out[DRAWS];
    double chi = 0, sum = 0;
    for (int i = 0; i < N; i++)
        sum += (double)(weight[i] = 100 + random_below(10000));
    shuf_weights *weights = make(weight, SHUF_U64, N);
    expect_ok(shuf_weights_draw(weights, random_u64(), random_u64(), 0, DRAWS, 1, 1, out));
    for (int i = 0; i < DRAWS; i++)
        seen[out[i]]++;
    for (int i = 0; i < N; i++) {
        const double expected = DRAWS * (double)weight[i] / sum;
        chi += ((double)seen[i] - expected) * ((double)seen[i] - expected) / expected;
    }
    assert_true(fabs(chi - (N - 1)) < 6 * sqrt(2.0 * N));
    shuf_weights_free(weights);
}

/* ---- Samples ---- */

struct key {
    double key;
    uint64_t index;
};

static int compare_keys(const void *a, const void *b)
{
    const struct key *x = a, *y = b;
    return x->key != y->key ? (x->key > y->key) - (x->key < y->key)
                            : (x->index > y->index) - (x->index < y->index);
}

/* The keys of the weights above 0, in order. */
static uint64_t sort_keys(const uint64_t *weight, uint64_t n, uint64_t seed, uint64_t epoch,
                          struct key *key)
{
    const shuf_stream words = shuf_stream_make(shuf_key_of_seed(seed), epoch, SHUF_STREAM_SAMPLE);
    const shuf_box_muller_terms terms = shuf_box_muller_terms_make();
    uint64_t count = 0, largest = 0;
    int top = 0;
    for (uint64_t i = 0; i < n; i++)
        largest = weight[i] > largest ? weight[i] : largest;
    while (largest >> top)
        top++;
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t word[] = {shuf_uniform_u64(&words, 2 * i),
                                 shuf_uniform_u64(&words, 2 * i + 1)};
        if (weight[i])
            key[count++] = (struct key){
                shuf_box_muller_log_f64(&terms, word) / ldexp((double)weight[i], -top), i};
    }
    qsort(key, count, sizeof *key, compare_keys);
    return count;
}

static void samples_are_sorted_keys(void **state)
{
    (void)state;
    random_start("samples_are_sorted_keys");
    static uint64_t weight[MOST], out[MOST];
    static struct key key[MOST];
    for (int round = 0; round < 60; round++) {
        const uint64_t n = random_size(MOST), seed = random_u64(), epoch = random_u64();
        random_weights(weight, n);
        const uint64_t count = sort_keys(weight, n, seed, epoch, key);
        const uint64_t size = random_below(3) ? random_size(count) : count;
        sample(weight, SHUF_U64, n, seed, epoch, size, out);
        for (uint64_t i = 0; i < size; i++)
            assert_int_equal(out[i], key[i].index);
    }
}

/* Chi-squared of the ordered pairs of 4 indices, in 2^17 samples; its limit is 6 standard
 * deviations. */
static void samples_follow_successive_draws(void **state)
{
    (void)state;
    random_start("samples_follow_successive_draws");
    enum { SAMPLES = 1 << 17 };
    const double weight[] = {1, 0, 2, 5, 0.5};
    unsigned seen[5][5] = {0};
    double chi = 0;
    const uint64_t seed = random_u64();
    for (uint64_t i = 0; i < SAMPLES; i++) {
        uint64_t out[2];
        sample(weight, SHUF_F64, 5, seed, i, 2, out);
        seen[out[0]][out[1]]++;
    }
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < 5; j++) {
            const double p = weight[i] / 8.5 * (i == j ? 0 : weight[j] / (8.5 - weight[i]));
            if (p == 0)
                assert_int_equal(seen[i][j], 0);
            else
                chi += pow(seen[i][j] - SAMPLES * p, 2) / (SAMPLES * p);
        }
    assert_true(fabs(chi - 11) < 6 * sqrt(2.0 * 11));
}

/* All instruction sets make the same keys. */
static void exponentials_agree(void **state)
{
    (void)state;
    random_start("exponentials_agree");
    static uint64_t word[2048];
    static double expected[1024], out[1024];
    const shuf_box_muller_terms terms = shuf_box_muller_terms_make();
    for (int i = 0; i < 2048; i++)
        word[i] = random_below(4) ? random_u64() : random_size(UINT64_MAX) - random_below(2);
    for (int i = 0; i < 1024; i++)
        expected[i] = shuf_box_muller_log_f64(&terms, word + 2 * i);
    for (int i = 0; i < SHUF__SIMD_SETS; i++) {
        const struct shuf__simd_ops *simd;
        struct shuf__error error = {0};
        if (shuf__simd_choose(shuf__simd_names[i], &simd, &error))
            continue;
        simd->exponential_keys(word, out, 1024);
        assert_memory_equal(out, expected, sizeof out);
    }
}

/* ---- Refusals ---- */

static void expect_invalid(shuf_status status, const char *part)
{
    assert_int_equal(status, SHUF_INVALID);
    if (!strstr(shuf_message(NULL), part))
        fail_msg("%s: expected %s in it", shuf_message(NULL), part);
}

static void bad_weights(void **state)
{
    (void)state;
    const double bad[] = {-1, NAN, INFINITY, -INFINITY, -5e-324, -NAN};
    shuf_weights *weights;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const double wide[] = {1, 2, bad[i]};
        const float narrow[] = {1, 2, (float)(bad[i] == -5e-324 ? -1e-45 : bad[i])};
        expect_invalid(shuf_weights_make(wide, SHUF_F64, 3, &weights), "weights[2]");
        assert_null(weights);
        expect_invalid(shuf_weights_make(narrow, SHUF_F32, 3, &weights), "weights[2]");
    }
    const double zeros[] = {0, -0.0, 0};
    expect_invalid(shuf_weights_make(zeros, SHUF_F64, 3, &weights), "all are 0");
    expect_invalid(shuf_weights_make(zeros, SHUF_F64, 0, &weights), "0 of them");
    expect_invalid(shuf_weights_make(zeros, SHUF_F64, (UINT64_C(1) << 32) + 1, &weights), "2^32");
    expect_invalid(shuf_weights_make(zeros, SHUF_I64, 3, &weights), "type i64");
    expect_invalid(shuf_weights_make(NULL, SHUF_F64, 3, &weights), "values");
    expect_invalid(shuf_weights_make(zeros, SHUF_F64, 3, NULL), "weights");
}

static void bad_ranges(void **state)
{
    (void)state;
    uint64_t out[4];
    shuf_weights *weights = make((double[]){1, 2}, SHUF_F64, 2);
    expect_ok(shuf_weights_draw(weights, 0, 0, END - 4, 4, 1, 1, out));
    expect_ok(shuf_weights_draw(weights, 0, 0, 0, 2, END - 1, 1, out));
    expect_ok(shuf_weights_draw(weights, 0, 0, END, 0, 1, 1, out));
    expect_invalid(shuf_weights_draw(weights, 0, 0, END, 1, 1, 1, out), "first");
    expect_invalid(shuf_weights_draw(weights, 0, 0, END - 3, 4, 1, 1, out), "count 4");
    expect_invalid(shuf_weights_draw(weights, 0, 0, 0, 3, END / 2, 1, out), "below 2^62");
    expect_invalid(shuf_weights_draw(weights, 0, 0, 0, 3, 0, 1, out), "stride 0");
    expect_invalid(shuf_weights_draw(weights, 0, 0, 0, 3, 1, 1, NULL), "out");
    expect_invalid(shuf_weights_draw(NULL, 0, 0, 0, 3, 1, 1, out), "weights");
    shuf_weights_free(weights);
    shuf_weights_free(NULL);
}

static void bad_samples(void **state)
{
    (void)state;
    uint64_t out[4];
    const double weight[] = {1, 0, 3}, bad[] = {1, NAN};
    expect_invalid(shuf_weights_sample(weight, SHUF_F64, 3, 0, 0, 3, out), "sample of 3");
    expect_invalid(shuf_weights_sample(weight, SHUF_F64, 3, 0, 0, SIZE_MAX, out), "at most 3");
    expect_invalid(shuf_weights_sample(weight, SHUF_F64, 0, 0, 0, 1, out), "0 of them");
    expect_invalid(shuf_weights_sample(weight, SHUF_BF16, 3, 0, 0, 1, out), "type bf16");
    expect_invalid(shuf_weights_sample(bad, SHUF_F64, 2, 0, 0, 1, out), "weights[1]");
    expect_invalid(shuf_weights_sample(weight + 1, SHUF_F64, 1, 0, 0, 0, out), "all are 0");
    expect_invalid(shuf_weights_sample(NULL, SHUF_F64, 1, 0, 0, 0, out), "values");
    expect_invalid(shuf_weights_sample(weight, SHUF_F64, 1, 0, 0, 0, NULL), "out");
}

static int questions_left;

static bool interrupt(void)
{
    return --questions_left < 0;
}

static void calls_are_interruptible(void **state)
{
    (void)state;
    enum { COUNT = 3 << 20 };
    double *weight = malloc(COUNT * sizeof *weight);
    uint64_t *out = malloc(COUNT * sizeof *out);
    shuf_weights *weights;
    for (int i = 0; i < COUNT; i++)
        weight[i] = i;
    shuf_set_interrupt(interrupt);
    for (int question = 0; question < 13; question++) { /* three passes of 3 parts, one of 4 */
        questions_left = question;
        assert_int_equal(shuf_weights_make(weight, SHUF_F64, COUNT, &weights), SHUF_CANCELLED);
        assert_null(weights);
    }
    questions_left = 13;
    weights = make(weight, SHUF_F64, COUNT);
    questions_left = 3;
    assert_int_equal(shuf_weights_draw(weights, 0, 0, 0, COUNT, 1, 2, out), SHUF_CANCELLED);
    questions_left = 5;
    assert_int_equal(shuf_weights_sample(weight, SHUF_F64, COUNT, 0, 0, COUNT - 1, out),
                     SHUF_CANCELLED);
    shuf_set_interrupt(NULL);
    shuf_weights_free(weights);
    free(weight);
    free(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_table),
        cmocka_unit_test(golden_samples),
        cmocka_unit_test(law_is_exact),
        cmocka_unit_test(types_agree),
#ifdef __x86_64__
        cmocka_unit_test(flushed_weights_count),
#endif
        cmocka_unit_test(any_draw_comes_first),
        cmocka_unit_test(draws_follow_the_weights),
        cmocka_unit_test(samples_are_sorted_keys),
        cmocka_unit_test(samples_follow_successive_draws),
        cmocka_unit_test(exponentials_agree),
        cmocka_unit_test(bad_weights),
        cmocka_unit_test(bad_ranges),
        cmocka_unit_test(bad_samples),
        cmocka_unit_test(calls_are_interruptible),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
