/* SPDX-License-Identifier: MIT
 *
 * Arrays of weights, the table of weighted draws, and ranges of draws. See weights.h.
 *
 * The table is made in place: first each column has its rounded weight, then its threshold and
 * alias. A bit for each column says whether it is heavy, because a column that is done no longer
 * has its weight.
 */
#include "host/weights.h"

#include "host/cancelled.h"
#include "host/host.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

enum { CHECK_EVERY = 1 << 20 }; /* weights between two questions to the caller */

static bool is_cancelled(const struct shuf__computation *computation, uint64_t i)
{
    return i % CHECK_EVERY == 0 && computation->cancelled &&
           computation->cancelled(computation->cancel_context);
}

/* ---- Weights ---- */

static uint64_t bits_of(const struct shuf__weight_array *weights, uint64_t i)
{
    const size_t width = weights->type == SHUF_F32 ? sizeof(float) : sizeof(double);
    uint64_t bits = 0; /* of a float in the lower half, on a little-endian machine */
    memcpy(&bits, (const char *)weights->values + i * width, width);
    return bits;
}

shuf_weight shuf__weight(const struct shuf__weight_array *weights, uint64_t i)
{
    const uint64_t bits = bits_of(weights, i);
    if (weights->type == SHUF_U64)
        return (shuf_weight){bits, 0};
    return weights->type == SHUF_F64 ? shuf_weight_of_f64(bits)
                                     : shuf_weight_of_f32((uint32_t)bits);
}

static bool is_weight(const struct shuf__weight_array *weights, uint64_t i)
{
    const uint64_t bits = bits_of(weights, i);
    return weights->type == SHUF_U64 ||
           (weights->type == SHUF_F64 ? shuf_weight_is_f64(bits)
                                      : shuf_weight_is_f32((uint32_t)bits));
}

shuf_status shuf__bad_weight(const struct shuf__weight_array *weights, uint64_t i, uint64_t number,
                             struct shuf__error *error)
{
    const double value = weights->type == SHUF_F64 ? ((const double *)weights->values)[i]
                                                   : ((const float *)weights->values)[i];
    return shuf__fail(error, SHUF_INVALID,
                      "weights[%" PRIu64 "] %g: expected a finite number of 0 or more", number,
                      value);
}

shuf_status shuf__no_weight(struct shuf__error *error)
{
    return shuf__fail(error, SHUF_INVALID, "weights: all are 0, expected one above 0");
}

shuf_status shuf__weights_check(const struct shuf__weight_array *weights,
                                const struct shuf__computation *computation, int *top,
                                struct shuf__error *error)
{
    *top = INT_MIN;
    for (uint64_t i = 0; i < weights->count; i++) {
        if (is_cancelled(computation, i))
            return shuf__fail_cancelled(error);
        if (!is_weight(weights, i))
            return shuf__bad_weight(weights, i, i, error);
        const shuf_weight weight = shuf__weight(weights, i);
        if (weight.number) {
            const int end = 64 - __builtin_clzll(weight.number) + weight.exponent;
            *top = end > *top ? end : *top;
        }
    }
    if (*top == INT_MIN)
        return shuf__no_weight(error);
    return SHUF_OK;
}

/* ---- Rounded weights ---- */

struct build {
    const struct shuf__weight_array *weights;
    const struct shuf__computation *computation;
    int top; /* all weights are below 2^top */
    uint64_t *column, columns, full;
    uint64_t *heavy; /* a bit for each column */
    unsigned bits;
};

static bool add(const struct build *b, shuf__u128 *sum)
{
    for (uint64_t i = 0; i < b->weights->count; i++) {
        if (is_cancelled(b->computation, i))
            return false;
        *sum += shuf_weight_fixed(shuf__weight(b->weights, i), b->top);
    }
    return true;
}

static bool round_weights(const struct build *b, shuf__u128 sum)
{
    const unsigned shift = 64 - (unsigned)__builtin_clzll((uint64_t)(sum >> 64));
    const uint64_t upper = (uint64_t)(sum >> shift);
    shuf__u128 before = 0;
    uint64_t part = 0;
    for (uint64_t i = 0; i < b->weights->count; i++) {
        if (is_cancelled(b->computation, i))
            return false;
        before += shuf_weight_fixed(shuf__weight(b->weights, i), b->top);
        const uint64_t end = shuf_weights_part(before, shift, upper);
        b->column[i] = end - part;
        b->heavy[i / 64] |= (uint64_t)(end - part > b->full) << i % 64;
        part = end;
    }
    return true;
}

/* ---- Columns ---- */

static bool is_heavy(const struct build *b, uint64_t column)
{
    return b->heavy[column / 64] >> column % 64 & 1;
}

/* The first heavy column from `from` on, or the number of columns. */
static uint64_t heavy_from(const struct build *b, uint64_t from)
{
    if (from >= b->columns)
        return b->columns;
    uint64_t at = from / 64, word = b->heavy[at] >> from % 64 << from % 64;
    while (word == 0 && ++at * 64 < b->columns)
        word = b->heavy[at];
    return word ? at * 64 + (uint64_t)__builtin_ctzll(word) : b->columns;
}

/* The heavy column that fills light ones, and the rest of its weight. */
struct giver {
    uint64_t column, rest;
};

/* The rest stays in the column of the giver. The next heavy column fills it. */
static void settle(const struct build *b, struct giver *giver)
{
    const uint64_t next = heavy_from(b, giver->column + 1), rest = giver->rest;
    const bool is_last = next == b->columns;
    giver->rest += is_last ? 0 : b->column[next] - b->full;
    b->column[giver->column] = shuf_weights_column(rest, is_last ? giver->column : next, b->bits);
    giver->column = next;
}

static bool fill_columns(const struct build *b)
{
    struct giver giver = {heavy_from(b, 0), 0};
    giver.rest = giver.column < b->columns ? b->column[giver.column] : 0;
    for (uint64_t i = 0; i < b->columns; i++) {
        if (is_cancelled(b->computation, i))
            return false;
        if (is_heavy(b, i))
            continue;
        const uint64_t weight = b->column[i], gap = b->full - weight;
        while (gap && giver.rest <= b->full)
            settle(b, &giver);
        b->column[i] = shuf_weights_column(weight, gap ? giver.column : i, b->bits);
        giver.rest -= gap;
    }
    while (giver.column < b->columns)
        settle(b, &giver);
    return true;
}

static shuf_status build(struct build *b, struct shuf__error *error)
{
    shuf__u128 sum = 0;
    if (shuf__weights_check(b->weights, b->computation, &b->top, error))
        return error->status;
    return add(b, &sum) && round_weights(b, sum) && fill_columns(b) ? SHUF_OK
                                                                    : shuf__fail_cancelled(error);
}

shuf_status shuf__weight_table_make(struct shuf__weight_table *table,
                                    const struct shuf__weight_array *weights,
                                    const struct shuf__computation *computation,
                                    struct shuf__error *error)
{
    const unsigned bits = shuf_weights_bits(weights->count);
    const uint64_t columns = UINT64_C(1) << bits;
    if (shuf__host_alloc(SHUF__MEMORY_PRIVATE, columns * sizeof *table->column, &table->block,
                         error))
        return error->status;
    table->column = table->block.memory;
    table->bits = bits;
    struct build b = {.weights = weights,
                      .computation = computation,
                      .column = table->column,
                      .columns = columns,
                      .full = shuf_weights_full(bits),
                      .heavy = calloc((columns + 63) / 64, sizeof *b.heavy),
                      .bits = bits};
    if (!b.heavy)
        shuf__fail(error, SHUF_NO_MEMORY, "weights: no memory");
    else if (shuf__simd_choose(NULL, &table->simd, error) == SHUF_OK)
        build(&b, error);
    free(b.heavy);
    if (error->status)
        shuf__weight_table_free(table);
    return error->status;
}

void shuf__weight_table_free(struct shuf__weight_table *table)
{
    shuf__host_free(&table->block);
}

/* ---- Draws ---- */

enum {
    PART = 1 << 16, /* draws between two questions to the caller */
    FEW = 64,       /* words that take less time one by one */
    AHEAD = 32,     /* draws between the request for a column and its use */
};

/* What the threads of a call share. */
struct run {
    const struct shuf__weight_table *table;
    const struct shuf__computation *computation;
    shuf__draw *draw;
    union shuf__source source;
    uint64_t first, count, stride;
    uint64_t *out;
    atomic_uint_fast64_t next; /* part to take */
    atomic_bool cancelled;
};

static void request(const struct shuf__weight_table *table, uint64_t word)
{
    __builtin_prefetch(table->column + shuf_weights_column_of(word, table->bits));
}

static void look_up(const struct shuf__weight_table *table, const uint64_t *word, size_t count,
                    uint64_t *out)
{
    const size_t ahead = count < AHEAD ? count : AHEAD;
    for (size_t i = 0; i < ahead; i++)
        request(table, word[i]);
    for (size_t i = 0; i < count; i++) {
        if (i + ahead < count)
            request(table, word[i + ahead]);
        out[i] = shuf_weights_draw_of(table->column, table->bits, word[i]);
    }
}

/* Draws that have neighbouring words, made 1024 at a time. */
static void draw_neighbours(const struct run *run, uint64_t first, uint64_t count, uint64_t *out)
{
    uint64_t word[SHUF__SUPER];
    for (uint64_t done = 0, part; done < count; done += part) {
        const uint64_t at = (first + done) % SHUF__SUPER;
        part = SHUF__SUPER - at < count - done ? SHUF__SUPER - at : count - done;
        run->draw(&run->source, (first + done) / SHUF__SUPER, word);
        look_up(run->table, word + at, part, out + done);
    }
}

static void draw_single(const struct run *run, uint64_t first, uint64_t count, uint64_t *out)
{
    uint64_t word[SHUF__SUPER];
    for (uint64_t done = 0, part; done < count; done += part) {
        part = count - done < SHUF__SUPER ? count - done : SHUF__SUPER;
        for (uint64_t i = 0; i < part; i++)
            word[i] = shuf_uniform_u64(&run->source.uniform, first + (done + i) * run->stride);
        look_up(run->table, word, part, out + done);
    }
}

static void draw_parts(struct run *run)
{
    while (!shuf__is_cancelled(run->computation, &run->cancelled)) {
        const uint64_t done = atomic_fetch_add(&run->next, 1) * PART, left = run->count - done;
        if (done >= run->count)
            return;
        const bool are_neighbours = run->stride == 1 && left >= FEW;
        (are_neighbours ? draw_neighbours : draw_single)(
            run, run->first + done * run->stride, left < PART ? left : PART, run->out + done);
    }
}

shuf_status shuf__weighted_fill(const struct shuf__weighted *draws, int threads,
                                const struct shuf__computation *computation, uint64_t first,
                                uint64_t count, uint64_t stride, uint64_t *out,
                                struct shuf__error *error)
{
    const uint64_t parts = count ? (count - 1) / PART + 1 : 0;
    struct run run = {.table = draws->table,
                      .computation = computation,
                      .draw = draws->table->simd->stream(SHUF_DISTRIBUTION_UNIFORM, SHUF_U64),
                      .first = first,
                      .count = count,
                      .stride = stride,
                      .out = out};
    run.source.uniform =
        shuf_stream_make(shuf_key_of_seed(draws->seed), draws->epoch, SHUF_STREAM_WEIGHTED);
    if (parts < (uint64_t)threads)
        threads = parts ? (int)parts : 1;
    if (threads == 1)
        draw_parts(&run);
    else {
#pragma omp parallel num_threads(threads)
        draw_parts(&run);
    }
    return atomic_load(&run.cancelled) ? shuf__fail_cancelled(error) : SHUF_OK;
}
