/* SPDX-License-Identifier: MIT
 *
 * See order.h: the orders of libshuf, and orders with a fault. A fault is one that a plausible
 * implementation could have: a key that is used twice, an epoch that is forgotten, a number with
 * too few bits.
 */
#include "order.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum fault {
    NO_FAULT,
    WINDOWS_SHARED,
    WINDOWS_WITHOUT_EPOCH,
    WINDOWS_BY_CHUNK_KEY,
    WINDOWS_LEAK,
    CHUNKS_WITHOUT_EPOCH,
    CHUNKS_ROTATED,
    CHUNKS_SHORT_LAST,
    BLOCKS_SHARED,
    BLOCKS_ROTATED,
    BLOCKS_INDEPENDENT,
    BLOCKS_WITHOUT_SEED,
    BLOCKS_BY_SOURCE_KEY,
    EPOCHS_REPEATED,
    SOURCES_SHARED,
    DRAWS_FLOAT,
    DRAWS_TWICE,
    DRAWS_WITHOUT_EPOCH,
    DRAWS_NEAR_SEEDS,
    DRAWS_WITHOUT_STRIDE,
    SAMPLES_PRODUCT,
    SAMPLES_FIRST_ONLY,
    SAMPLES_WITHOUT_EPOCH,
};

const struct shuf__fault shuf__faults[] = {
    {"windows-shared", "windowed", "the windows of an epoch have one order", "windows",
     "rows, agreements", WINDOWS_SHARED},
    {"windows-without-epoch", "windowed", "a window has the same order in each epoch", "window 1",
     "rows", WINDOWS_WITHOUT_EPOCH},
    {"windows-by-chunk-key", "windowed", "windows and chunks have one key", "chunks, window",
     "rows", WINDOWS_BY_CHUNK_KEY},
    {"windows-leak", "windowed", "windows exchange a record", "membership", "windows",
     WINDOWS_LEAK},
    {"chunks-without-epoch", "windowed", "the chunks have the same order in each epoch", "chunks",
     "places", CHUNKS_WITHOUT_EPOCH},
    {"chunks-rotated", "windowed", "the chunks are rotated, not shuffled", "distances",
     "two windows", CHUNKS_ROTATED},
    {"chunks-short-last", "windowed", "the short chunk is the last one", "short chunk", "slot",
     CHUNKS_SHORT_LAST},
    {"blocks-shared", "mixture", "the blocks of a mixture have one arrangement", "block", "places",
     BLOCKS_SHARED},
    {"blocks-rotated", "mixture", "a block is a rotated fixed arrangement", "block",
     "pairs 1 apart", BLOCKS_ROTATED},
    {"blocks-independent", "mixture", "each position draws its source for itself", "shares",
     "one stage", BLOCKS_INDEPENDENT},
    {"blocks-without-seed", "mixture", "two seeds have the same arrangements", "block",
     "agreements, seeds", BLOCKS_WITHOUT_SEED},
    {"blocks-by-source-key", "mixture", "blocks and the first source have one key", "block, source",
     "rows", BLOCKS_BY_SOURCE_KEY},
    {"epochs-repeated", "mixture", "a source repeats its first epoch", "source", "places",
     EPOCHS_REPEATED},
    {"sources-shared", "mixture", "sources have one key", "two sources", "rows, agreements",
     SOURCES_SHARED},
    {"draws-float", "weighted", "an alias table with one f32 number a draw", "draws",
     "by octaves, half", DRAWS_FLOAT},
    {"draws-twice", "weighted", "two neighbours are one draw", "draws 1 apart", "", DRAWS_TWICE},
    {"draws-without-epoch", "weighted", "the epochs have the same draws", "draws, epochs", "",
     DRAWS_WITHOUT_EPOCH},
    {"draws-near-seeds", "weighted", "two seeds have the same draws", "draws, seeds", "",
     DRAWS_NEAR_SEEDS},
    {"draws-without-stride", "weighted", "each rank has neighbouring draws", "strides", "equal",
     DRAWS_WITHOUT_STRIDE},
    {"samples-product", "weighted", "the largest products of weight and uniform number", "sample",
     "3 of 6", SAMPLES_PRODUCT},
    {"samples-first-only", "weighted", "after the first draw, all indices are equal", "sample",
     "3 of 6", SAMPLES_FIRST_ONLY},
    {"samples-without-epoch", "weighted", "the epochs have the same sample", "sample", "two epochs",
     SAMPLES_WITHOUT_EPOCH},
    {0},
};

static enum fault fault_of(const struct shuf__order_run *run)
{
    return run->fault ? (enum fault)run->fault->number : NO_FAULT;
}

static bool is_between(enum fault fault, enum fault first, enum fault last)
{
    return first <= fault && fault <= last;
}

/* ---- Random numbers of orders with a fault ---- */

#define PURPOSE ((enum shuf_purpose)0x666c6177) /* no algorithm of shufd has it */

static uint32_t word_of(uint64_t seed, uint64_t epoch, uint64_t i)
{
    uint32_t word[8];
    shuf_key_words(shuf_key_of_seed(seed), epoch, PURPOSE, i / 8, word);
    return word[i % 8];
}

static double uniform_of(uint64_t seed, uint64_t epoch, uint64_t i)
{
    return (word_of(seed, epoch, i) + 0.5) * 0x1p-32;
}

static void fill_order(uint32_t n, shuf_key key, uint64_t epoch, uint32_t *order)
{
    const shuf_primefold f = shuf_primefold_make_keyed(n, key, epoch);
    for (uint32_t i = 0; i < n; i++)
        order[i] = (uint32_t)shuf_primefold_forward(&f, i);
}

/* ---- Windowed orders ---- */

static void order_chunks(enum fault fault, const shuf_windows *sizes, shuf_key key, uint32_t *chunk)
{
    const uint32_t chunks = (uint32_t)sizes->chunks;
    fill_order(chunks, key, 0, chunk);
    const uint32_t first = chunk[0], last = chunk[chunks - 1];
    for (uint32_t slot = 0; slot < chunks; slot++)
        if (fault == CHUNKS_ROTATED)
            chunk[slot] = (first + slot) % chunks;
        else if (fault == CHUNKS_SHORT_LAST && chunk[slot] == chunks - 1)
            chunk[slot] = last;
    if (fault == CHUNKS_SHORT_LAST)
        chunk[chunks - 1] = chunks - 1;
}

/* Writes the records of some chunks, and returns their number. */
static uint32_t list_records(const shuf_windows *sizes, const uint32_t *chunk, uint64_t chunks,
                             uint32_t *record)
{
    uint32_t count = 0;
    for (uint64_t k = 0; k < chunks; k++)
        for (uint64_t r = chunk[k] * sizes->chunk; r < (chunk[k] + 1) * sizes->chunk; r++)
            if (r < sizes->n)
                record[count++] = (uint32_t)r;
    return count;
}

static void broken_windows(enum fault fault, const shuf_windows *sizes, uint64_t seed,
                           uint64_t epoch, uint32_t *record)
{
    uint32_t *chunk = shuf__order_allocate(sizes->chunks, sizeof *chunk);
    uint32_t *list = shuf__order_allocate(2 * sizes->n, sizeof *list), *order = list + sizes->n;
    shuf_key of_chunks, of_windows, other;
    uint32_t first = 0, count;
    shuf_windowed_keys(sizes, shuf_key_of_seed(seed), epoch, &of_chunks, &of_windows);
    if (fault == CHUNKS_WITHOUT_EPOCH)
        shuf_windowed_keys(sizes, shuf_key_of_seed(seed), 0, &of_chunks, &other);
    if (fault == WINDOWS_WITHOUT_EPOCH)
        shuf_windowed_keys(sizes, shuf_key_of_seed(seed), 0, &other, &of_windows);
    if (fault == WINDOWS_BY_CHUNK_KEY)
        of_windows = of_chunks;
    order_chunks(fault, sizes, of_chunks, chunk);
    for (uint64_t j = 0; j < sizes->windows; j++, first += count) {
        const uint64_t slot = j * sizes->window, left = sizes->chunks - slot;
        count =
            list_records(sizes, chunk + slot, left < sizes->window ? left : sizes->window, list);
        fill_order(count, of_windows, fault == WINDOWS_SHARED ? 0 : j, order);
        for (uint32_t i = 0; i < count; i++)
            record[first + i] = list[order[i]];
        if (fault == WINDOWS_LEAK && j == 1 && sizes->window > 1) {
            const uint32_t swapped = record[first];
            record[first] = record[first - 1];
            record[first - 1] = swapped;
        }
    }
    free(list);
    free(chunk);
}

void shuf__order_windows(const struct shuf__order_run *run, const shuf_windows *sizes,
                         uint64_t seed, uint64_t epoch, uint32_t *record)
{
    const shuf_request request = {.permutation = {.n = sizes->n,
                                                  .seed = seed,
                                                  .epoch = epoch,
                                                  .chunk = sizes->chunk,
                                                  .window = sizes->window}};
    if (is_between(fault_of(run), WINDOWS_SHARED, CHUNKS_SHORT_LAST))
        broken_windows(fault_of(run), sizes, seed, epoch, record);
    else
        shuf__order_expect(shuf_host_fill(&request, 1, record, sizes->n * sizeof *record));
}

/* ---- Mixtures ---- */

/* A mixture of one stage by its definition: the right numbers of records of each source in a
 * block, in slots that a permutation arranges. */
struct broken {
    enum fault fault;
    const shuf_mixture_request *request;
    const shuf_mixture *made;
    shuf_key block_key, source_key;
};

static shuf_key key_of(uint64_t seed, uint64_t purpose)
{
    return shuf_key_of_seed(((uint64_t)word_of(seed, purpose, 0) << 32) |
                            word_of(seed, purpose, 1));
}

static uint32_t record_of(const struct broken *b, uint32_t source, uint64_t draw)
{
    const uint64_t records = b->request->sources[source].records, epoch = draw / records;
    const shuf_key key = {{b->source_key.word[0], b->fault == SOURCES_SHARED ? 0 : source}};
    const shuf_primefold order =
        shuf_primefold_make_keyed(records, key, b->fault == EPOCHS_REPEATED ? 0 : epoch);
    return (uint32_t)shuf_primefold_forward(&order, draw % records);
}

/* Writes the slots of a block in the order of its positions. */
static void arrange(const struct broken *b, uint64_t block, uint32_t *slot)
{
    const uint32_t size = (uint32_t)b->request->block;
    const bool same = b->fault == BLOCKS_SHARED || b->fault == BLOCKS_ROTATED;
    fill_order(size, b->block_key, same ? 0 : block, slot);
    if (b->fault != BLOCKS_ROTATED)
        return;
    uint32_t *fixed = shuf__order_allocate(size, sizeof *fixed);
    memcpy(fixed, slot, size * sizeof *slot);
    for (uint32_t i = 0; i < size; i++)
        slot[i] = fixed[(i + word_of(b->block_key.word[0], block, 7)) % size];
    free(fixed);
}

static uint32_t source_of_slot(const struct broken *b, const uint64_t *from, const uint64_t *end,
                               uint64_t slot)
{
    uint32_t source = 0;
    while (source + 1 < b->request->source_count && slot >= end[source] - from[source])
        slot -= end[source] - from[source], source++;
    return source;
}

/* Writes the source and the draw at each position of a block. */
static void fill_block(const struct broken *b, uint64_t block, uint64_t *from, uint64_t *end,
                       uint32_t *slot, uint32_t *source, uint64_t *draw)
{
    const uint64_t size = b->request->block;
    shuf__order_expect(shuf_mixture_counts(b->made, block * size, from));
    shuf__order_expect(shuf_mixture_counts(b->made, (block + 1) * size, end));
    arrange(b, block, slot);
    for (uint64_t i = 0; i < size; i++) {
        const uint64_t at = b->fault == BLOCKS_INDEPENDENT
                                ? word_of(b->block_key.word[0], block, i) % size
                                : slot[i];
        source[i] = source_of_slot(b, from, end, at);
    }
    for (uint64_t i = 0; i < size; i++)
        draw[i] = from[source[i]]++;
}

static void broken_mixture(const struct broken *b, uint64_t first, size_t count,
                           const shuf_mixed *out)
{
    const uint64_t size = b->request->block;
    const size_t sources = b->request->source_count;
    uint64_t *from = shuf__order_allocate(2 * sources + size, sizeof *from);
    uint64_t *end = from + sources, *draw = end + sources;
    uint32_t *slot = shuf__order_allocate(2 * size, sizeof *slot), *source = slot + size;
    for (size_t i = 0; i < count; i++) {
        const uint64_t at = first + i;
        if (i == 0 || at % size == 0)
            fill_block(b, at / size, from, end, slot, source, draw);
        const uint32_t s = source[at % size];
        out->source[i] = s;
        out->epoch[i] = draw[at % size] / b->request->sources[s].records;
        out->record[i] = record_of(b, s, draw[at % size]);
    }
    free(from);
    free(slot);
}

void shuf__mixed_close(struct shuf__mixed *mixed)
{
    shuf_mixture_free(mixed->made);
    mixed->made = NULL;
}

void shuf__order_mixture(const struct shuf__order_run *run, const shuf_mixture_request *request,
                         struct shuf__mixed *mixed, uint64_t seed, uint64_t first, size_t count,
                         const shuf_mixed *out)
{
    const enum fault fault = fault_of(run);
    if (!mixed->made || mixed->seed != seed) {
        shuf_mixture_request seeded = *request;
        seeded.seed = seed;
        shuf__mixed_close(mixed);
        shuf__order_expect(shuf_mixture_make(&seeded, &mixed->made));
        mixed->seed = seed;
    }
    if (!is_between(fault, BLOCKS_SHARED, SOURCES_SHARED)) {
        shuf__order_expect(shuf_mixture_fill(mixed->made, first, count, 1, 1, out));
        return;
    }
    struct broken broken = {fault, request, mixed->made, key_of(seed, 0), key_of(seed, 1)};
    if (fault == BLOCKS_WITHOUT_SEED)
        broken.block_key = key_of(0, 0);
    if (fault == BLOCKS_BY_SOURCE_KEY)
        broken.block_key = broken.source_key;
    broken_mixture(&broken, first, count, out);
}

/* ---- Weighted draws ---- */

/* Walker's table in f32 (Vose: "A linear algorithm for generating random numbers with a given
 * distribution", IEEE Transactions on Software Engineering 17(9), 1991). */
static void make_float_table(const struct shuf__weight_set *set, float *threshold, uint32_t *alias)
{
    const uint32_t n = set->count;
    uint32_t *stack = shuf__order_allocate(n, sizeof *stack), light = 0, heavy = n;
    for (uint32_t j = 0; j < n; j++) {
        threshold[j] = (float)(set->p[j] * n);
        alias[j] = j;
        stack[threshold[j] < 1 ? light++ : --heavy] = j;
    }
    while (light > 0 && heavy < n) {
        const uint32_t from = stack[--light], to = stack[heavy];
        alias[from] = to;
        threshold[to] -= 1 - threshold[from];
        if (threshold[to] < 1) {
            heavy++;
            stack[light++] = to;
        }
    }
    while (heavy < n)
        threshold[stack[heavy++]] = 1;
    free(stack);
}

static void draw_by_floats(const struct shuf__weight_set *set, uint64_t seed, uint64_t epoch,
                           uint64_t first, size_t count, uint64_t stride, uint64_t *index)
{
    float *threshold = shuf__order_allocate(set->count, sizeof *threshold);
    uint32_t *alias = shuf__order_allocate(set->count, sizeof *alias);
    make_float_table(set, threshold, alias);
    for (size_t i = 0; i < count; i++) {
        const float u = (float)(word_of(seed, epoch, first + i * stride) >> 8) * 0x1p-24F;
        const float scaled = u * (float)set->count;
        const uint32_t column = (uint32_t)scaled < set->count ? (uint32_t)scaled : set->count - 1;
        index[i] = scaled - (float)column < threshold[column] ? column : alias[column];
    }
    free(threshold);
    free(alias);
}

void shuf__order_draws(const struct shuf__order_run *run, const struct shuf__weight_set *set,
                       uint64_t seed, uint64_t epoch, uint64_t first, size_t count, uint64_t stride,
                       uint64_t *index)
{
    const enum fault fault = fault_of(run);
    if (fault == DRAWS_FLOAT) {
        draw_by_floats(set, seed, epoch, first, count, stride, index);
        return;
    }
    seed = fault == DRAWS_NEAR_SEEDS ? seed / 2 : seed;
    epoch = fault == DRAWS_WITHOUT_EPOCH ? 0 : epoch;
    stride = fault == DRAWS_WITHOUT_STRIDE ? 1 : stride;
    shuf__order_expect(shuf_weights_draw(set->table, seed, epoch, first, count, stride, 1, index));
    for (size_t i = 0; i + 1 < count && fault == DRAWS_TWICE; i += 2)
        index[i + 1] = index[i];
}

/* The indices by descending products of weight and uniform number; or the first one at random and
 * the others uniformly. */
static void sample_by_scores(enum fault fault, const struct shuf__weight_set *set, uint64_t seed,
                             uint64_t epoch, size_t sample, uint64_t *index)
{
    double *score = shuf__order_allocate(set->count, sizeof *score);
    for (uint32_t j = 0; j < set->count; j++) {
        const double u = uniform_of(seed, epoch, j);
        score[j] = fault == SAMPLES_PRODUCT ? u * set->weight[j] : u;
    }
    if (fault == SAMPLES_FIRST_ONLY) {
        shuf__order_expect(
            shuf_weights_sample(set->weight, SHUF_F64, set->count, seed, epoch, 1, index));
        score[index[0]] = 2;
    }
    for (size_t i = 0; i < sample; i++) {
        uint32_t best = 0;
        for (uint32_t j = 1; j < set->count; j++)
            if (score[j] > score[best])
                best = j;
        index[i] = best;
        score[best] = -1;
    }
    free(score);
}

void shuf__order_sample(const struct shuf__order_run *run, const struct shuf__weight_set *set,
                        uint64_t seed, uint64_t epoch, size_t sample, uint64_t *index)
{
    const enum fault fault = fault_of(run);
    if (is_between(fault, SAMPLES_PRODUCT, SAMPLES_FIRST_ONLY))
        sample_by_scores(fault, set, seed, epoch, sample, index);
    else
        shuf__order_expect(shuf_weights_sample(set->weight, SHUF_F64, set->count, seed,
                                               fault == SAMPLES_WITHOUT_EPOCH ? 0 : epoch, sample,
                                               index));
}
