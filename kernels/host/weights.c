/* SPDX-License-Identifier: MIT
 *
 * See weights.h: arrays of weights, the table of weighted draws, ranges of draws, and samples.
 *
 * The table is made in place: first each column has its rounded weight, then its threshold and
 * alias. A bit for each column says whether it is heavy, because a column that is done no longer
 * has its weight.
 *
 * For a sample, one pass makes all keys and keeps those that may be among the first ones, at most
 * twice as many as the sample has. When there is no room left, it selects the first ones in linear
 * time. All other keys must then be below the last of these. At the end the sample is sorted.
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

/* One of the weights, once they are checked. */
static shuf_weight weight_at(const struct shuf__weight_array *weights, uint64_t i)
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

/* Fails unless the weights are finite, not negative and not all 0. *top is the least integer with
 * all weights below 2^*top. */
static shuf_status check_weights(const struct shuf__weight_array *weights,
                                 const struct shuf__computation *computation, int *top,
                                 struct shuf__error *error)
{
    *top = INT_MIN;
    for (uint64_t i = 0; i < weights->count; i++) {
        if (is_cancelled(computation, i))
            return shuf__fail_cancelled(error);
        if (!is_weight(weights, i))
            return shuf__bad_weight(weights, i, i, error);
        const shuf_weight weight = weight_at(weights, i);
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
        *sum += shuf_weight_fixed(weight_at(b->weights, i), b->top);
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
        before += shuf_weight_fixed(weight_at(b->weights, i), b->top);
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
    if (check_weights(b->weights, b->computation, &b->top, error))
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

/* ---- The order of a sample ---- */

enum {
    KEYS = SHUF__SUPER / 2, /* of the words that are made together */
    LEAST_ROOM = 1024,
    INSERTED = 16, /* items that are sorted by insertion */
};

/* The bits of a key, which is positive, have the order of the keys. */
struct item {
    uint64_t key, index;
};

static bool precedes(const struct item *a, const struct item *b)
{
    return a->key < b->key || (a->key == b->key && a->index < b->index);
}

static void exchange(struct item *a, struct item *b)
{
    const struct item kept = *a;
    *a = *b;
    *b = kept;
}

/* Moves the median of three items to the front. */
static void choose_pivot(struct item *item, size_t count)
{
    struct item *middle = item + count / 2, *last = item + count - 1;
    if (precedes(last, middle))
        exchange(last, middle);
    if (precedes(item, middle))
        exchange(item, middle);
    else if (precedes(last, item))
        exchange(item, last);
}

/* Divides at least 2 items, all different, into those before item number r and those after it, and
 * returns r. */
static size_t divide(struct item *item, size_t count)
{
    size_t low = 0, high = count;
    choose_pivot(item, count);
    for (;;) {
        do
            low++;
        while (low < count && precedes(&item[low], item));
        do
            high--;
        while (precedes(item, &item[high]));
        if (low >= high)
            break;
        exchange(&item[low], &item[high]);
    }
    exchange(item, &item[high]);
    return high;
}

/* Moves the first `wanted` items, at least 1, to the front. The last of them is then number
 * wanted - 1. */
static void select_first(struct item *item, size_t count, size_t wanted)
{
    while (count > 1) {
        const size_t at = divide(item, count);
        if (at == wanted - 1)
            return;
        if (at < wanted - 1) {
            item += at + 1;
            count -= at + 1;
            wanted -= at + 1;
        } else
            count = at;
    }
}

static void insert_each(struct item *item, size_t count)
{
    for (size_t i = 1; i < count; i++)
        for (size_t j = i; j > 0 && precedes(&item[j], &item[j - 1]); j--)
            exchange(&item[j], &item[j - 1]);
}

static void sort(struct item *item, size_t count)
{
    while (count > INSERTED) {
        const size_t at = divide(item, count), rest = count - at - 1;
        if (at < rest) {
            sort(item, at);
            item += at + 1;
            count = rest;
        } else {
            sort(item + at + 1, rest);
            count = at;
        }
    }
    insert_each(item, count);
}

/* ---- Samples ---- */

struct selection {
    const struct shuf__weight_array *weights;
    const struct shuf__simd_ops *simd;
    union shuf__source source;
    int top; /* all weights are below 2^top */
    struct item *item;
    size_t count, room, sample;
    uint64_t limit; /* only keys below it may be in the sample */
};

static void keep(struct selection *s, uint64_t key, uint64_t index)
{
    s->item[s->count++] = (struct item){key, index};
    if (s->count < s->room)
        return;
    select_first(s->item, s->count, s->sample);
    s->count = s->sample;
    s->limit = s->item[s->sample - 1].key;
}

static void add_keys(struct selection *s, uint64_t first, uint64_t count)
{
    uint64_t word[SHUF__SUPER], key;
    double number[KEYS];
    s->simd->stream(SHUF_DISTRIBUTION_UNIFORM, SHUF_U64)(&s->source, first / KEYS, word);
    s->simd->exponential_keys(word, number, count);
    for (uint64_t i = 0; i < count; i++) {
        const shuf_weight weight = weight_at(s->weights, first + i);
        if (weight.number == 0)
            continue;
        const double quotient = number[i] / shuf_weight_scaled(weight, s->top);
        memcpy(&key, &quotient, sizeof key);
        if (key < s->limit)
            keep(s, key, first + i);
    }
}

static bool add_all(struct selection *s, const struct shuf__computation *computation)
{
    for (uint64_t first = 0; first < s->weights->count; first += KEYS) {
        const uint64_t left = s->weights->count - first;
        if (is_cancelled(computation, first))
            return false;
        add_keys(s, first, left < KEYS ? left : KEYS);
    }
    return true;
}

shuf_status shuf__sample_too_large(uint64_t sample, uint64_t most, struct shuf__error *error)
{
    return shuf__fail(error, SHUF_INVALID,
                      "sample of %" PRIu64 ": expected at most %" PRIu64
                      ", the number of weights above 0",
                      sample, most);
}

static shuf_status finish(struct selection *s, uint64_t *out, struct shuf__error *error)
{
    if (s->count < s->sample)
        return shuf__sample_too_large(s->sample, s->count, error);
    select_first(s->item, s->count, s->sample);
    sort(s->item, s->sample);
    for (size_t i = 0; i < s->sample; i++)
        out[i] = s->item[i].index;
    return SHUF_OK;
}

shuf_status shuf__weighted_sample(const struct shuf__weight_array *weights, uint64_t seed,
                                  uint64_t epoch, const struct shuf__computation *computation,
                                  uint64_t sample, uint64_t *out, struct shuf__error *error)
{
    struct selection s = {.weights = weights, .sample = sample, .limit = UINT64_MAX};
    const uint64_t room = sample < LEAST_ROOM ? LEAST_ROOM : 2 * sample;
    if (check_weights(weights, computation, &s.top, error) || sample == 0 ||
        shuf__simd_choose(NULL, &s.simd, error))
        return error->status;
    if (sample > weights->count)
        return shuf__fail(error, SHUF_INVALID,
                          "sample of %" PRIu64 ": expected at most %" PRIu64 ", the weights",
                          sample, weights->count);
    s.source.uniform = shuf_stream_make(shuf_key_of_seed(seed), epoch, SHUF_STREAM_SAMPLE);
    s.room = room <= weights->count ? room : weights->count + 1;
    s.item = malloc(s.room * sizeof *s.item);
    if (!s.item)
        return shuf__fail(error, SHUF_NO_MEMORY, "sample of %" PRIu64 ": no memory", sample);
    if (add_all(&s, computation))
        finish(&s, out, error);
    else
        shuf__fail_cancelled(error);
    free(s.item);
    return error->status;
}
