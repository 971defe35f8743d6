/* SPDX-License-Identifier: MIT
 *
 * Mixtures. Each source has its share of each whole block, and the arrangement of the block is
 * uniform among those with these numbers of records. If each source has one record of a block, the
 * arrangement is a uniform permutation. The epochs of the sources are uniform permutations.
 * Arrangements and epochs are independent.
 *
 * For a block of B positions with c(i) records of source i, given these numbers, the sums below
 * have exact means and variances (multivariate hypergeometric law), also if the numbers differ from
 * block to block. Blocks are independent, so the normal law is exact for many blocks. One pair of
 * positions a block is an independent observation with exact probabilities.
 */
#include "order.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { SOURCES_MOST = 300 };

/* A mixture of sources of one kind. */
struct mix {
    const char *name;
    uint64_t samples; /* with an effort of 1 */
    uint32_t sources, block;
    uint64_t weights[SOURCES_MOST];
    uint64_t records, chunk, window; /* of each source; records = 0: 1000 */
};

/* Reads places of a mixture, for one thread. */
struct reader {
    const struct shuf__order_run *run;
    shuf_source sources[SOURCES_MOST];
    shuf_stage stage;
    shuf_mixture_request request;
    struct shuf__mixed mixed;
    uint32_t *source; /* of each place, as the next two */
    uint64_t *epoch, *record;
};

static void reader_open(struct reader *r, const struct shuf__order_run *run, const struct mix *mix,
                        uint64_t places)
{
    *r = (struct reader){.run = run, .stage = {0, mix->weights}};
    for (uint32_t i = 0; i < mix->sources; i++)
        r->sources[i] = (shuf_source){.records = mix->records ? mix->records : 1000,
                                      .chunk = mix->chunk,
                                      .window = mix->window};
    r->request = (shuf_mixture_request){.block = mix->block,
                                        .sources = r->sources,
                                        .source_count = mix->sources,
                                        .stages = &r->stage,
                                        .stage_count = 1};
    r->source = shuf__order_allocate(places, sizeof *r->source);
    r->epoch = shuf__order_allocate(2 * places, sizeof *r->epoch);
    r->record = r->epoch + places;
}

static const uint32_t *reader_read(struct reader *r, uint64_t seed, uint64_t first, uint64_t count)
{
    const shuf_mixed out = {.source = r->source, .epoch = r->epoch, .record = r->record};
    shuf__order_mixture(r->run, &r->request, &r->mixed, seed, first, count, &out);
    return r->source;
}

static void reader_close(struct reader *r)
{
    free(r->source);
    free(r->epoch);
}

/* ---- Sums with an exact mean and variance ---- */

/* A sum over the blocks, with the sums of the means and of the variances. */
enum { SUM, MEAN, VARIANCE, MOMENTS };

static void add_moments(double *words, double value, double mean, double variance)
{
    words[SUM] += value;
    words[MEAN] += mean;
    words[VARIANCE] += variance;
}

static void count_sources(const struct mix *mix, const uint32_t *places, double *count)
{
    for (uint32_t s = 0; s < mix->sources; s++)
        count[s] = 0;
    for (uint32_t i = 0; i < mix->block; i++)
        count[places[i]]++;
}

/* The positions of a source: c of B without replacement. */
static void add_positions(const struct mix *mix, const uint32_t *places, double *words)
{
    const double b = mix->block;
    double count[SOURCES_MOST], sum[SOURCES_MOST] = {0};
    count_sources(mix, places, count);
    for (uint32_t i = 0; i < mix->block; i++)
        sum[places[i]] += i;
    for (uint32_t s = 0; s < mix->sources; s++)
        add_moments(words + s * MOMENTS, sum[s], count[s] * (b - 1) / 2,
                    count[s] * (b - count[s]) * (b + 1) / 12);
}

/* The pairs (i, i + d) of one source. Two pairs share a position, or none. */
static void add_equal_pairs(const struct mix *mix, const uint32_t *places, uint32_t d,
                            double *words)
{
    const uint32_t size = mix->block;
    const double b = size, pairs = b - d, chains = size > 2 * d ? b - 2.0 * d : 0;
    double count[SOURCES_MOST], two = 0, three = 0, four = 0, twice = 0, equal = 0;
    count_sources(mix, places, count);
    for (uint32_t s = 0; s < mix->sources; s++) {
        const double c = count[s], c2 = c * (c - 1);
        two += c2;
        twice += c2 * c2;
        three += c2 * (c - 2);
        four += c2 * (c - 2) * (c - 3);
    }
    const double p = two / (b * (b - 1)), chain = three / (b * (b - 1) * (b - 2));
    const double apart = (four + two * two - twice) / (b * (b - 1) * (b - 2) * (b - 3));
    for (uint32_t i = 0; i + d < size; i++)
        equal += places[i] == places[i + d];
    add_moments(words, equal, pairs * p,
                pairs * p * (1 - p) + 2 * chains * (chain - p * p) +
                    (pairs * (pairs - 1) - 2 * chains) * (apart - p * p));
}

/* The positions at which two independent arrangements agree: a sum over a random permutation
 * (Hoeffding: "A combinatorial central limit theorem", 1951). */
static void add_agreements(const struct mix *mix, const uint32_t *left, const uint32_t *right,
                           double *words)
{
    const double b = mix->block;
    double f[SOURCES_MOST], g[SOURCES_MOST], agreements = 0, mean = 0, squares = 0;
    count_sources(mix, left, f);
    count_sources(mix, right, g);
    for (uint32_t s = 0; s < mix->sources; s++)
        mean += f[s] * g[s] / b;
    for (uint32_t s = 0; s < mix->sources; s++)
        for (uint32_t t = 0; t < mix->sources; t++) {
            const double off = (s == t) - g[s] / b - f[t] / b + mean / b;
            squares += f[s] * g[t] * off * off;
        }
    for (uint32_t i = 0; i < mix->block; i++)
        agreements += left[i] == right[i];
    add_moments(words, agreements, mean, squares / (b - 1));
}

static void find_moments(const struct shuf__order_run *run, const struct mix *mix,
                         const double *words, const char *detail)
{
    if (words[VARIANCE] > 0)
        shuf__order_find_sum(run, mix->block, words[SUM], words[MEAN], words[VARIANCE], "%s; %s",
                             detail, mix->name);
}

/* ---- Arrangements ---- */

/* The distances of the pairs. The last one is half of a block. */
enum { DISTANCES = 4 };

static uint32_t distance_of(const struct mix *mix, int i)
{
    const uint32_t distances[DISTANCES] = {1, 2, 3, mix->block / 2};
    return distances[i];
}

/* The words of arrangements: each source at each position; for each distance, pairs of sources; and
 * of two blocks; the moments. */
struct layout {
    size_t places, pairs, blocks, positions, equal, agreements, seeds, words;
};

static struct layout layout_of(const struct mix *mix)
{
    const size_t square = (size_t)mix->sources * mix->sources;
    struct layout at = {0};
    at.pairs = at.places + mix->block * mix->sources;
    at.blocks = at.pairs + DISTANCES * square;
    at.positions = at.blocks + square;
    at.equal = at.positions + (size_t)mix->sources * MOMENTS;
    at.agreements = at.equal + DISTANCES * (size_t)MOMENTS;
    at.seeds = at.agreements + MOMENTS;
    at.words = at.seeds + MOMENTS;
    return at;
}

static void add_block(const struct mix *mix, const struct layout *at, uint64_t number,
                      const uint32_t *places, double *sum)
{
    const size_t square = (size_t)mix->sources * mix->sources;
    for (uint32_t i = 0; i < mix->block; i++)
        sum[at->places + i * (size_t)mix->sources + places[i]]++;
    for (int k = 0; k < DISTANCES; k++) {
        const uint32_t d = distance_of(mix, k), i = (uint32_t)(number * 7919 % (mix->block - d));
        sum[at->pairs + (size_t)k * square + places[i] * mix->sources + places[i + d]]++;
        add_equal_pairs(mix, places, d, sum + at->equal + k * MOMENTS);
    }
    add_positions(mix, places, sum + at->positions);
}

/* A sample has two blocks, and the first one of them of the next seed. */
static void add_arrangements(const struct shuf__order_run *run, const void *context, uint64_t first,
                             uint64_t end, double *sum)
{
    const struct mix *mix = context;
    const struct layout at = layout_of(mix);
    const uint64_t seed = run->seed + first, size = mix->block;
    struct reader r, next;
    reader_open(&r, run, mix, 2 * size);
    reader_open(&next, run, mix, size);
    for (uint64_t sample = first; sample < end; sample++) {
        const uint32_t *left = reader_read(&r, seed, 2 * sample * size, 2 * size);
        const uint32_t *right = left + size, i = (uint32_t)(sample * 7919 % size);
        add_block(mix, &at, 2 * sample, left, sum);
        add_block(mix, &at, 2 * sample + 1, right, sum);
        sum[at.blocks + left[i] * mix->sources + right[i]]++;
        add_agreements(mix, left, right, sum + at.agreements);
        add_agreements(mix, left, reader_read(&next, seed + 1, 2 * sample * size, size),
                       sum + at.seeds);
    }
    shuf__mixed_close(&r.mixed);
    shuf__mixed_close(&next.mixed);
    reader_close(&r);
    reader_close(&next);
}

/* The table of places, as in places.c: (B - 1) / B times Pearson's sum. */
static void judge_places(const struct shuf__order_run *run, const struct mix *mix,
                         const double *table, double blocks)
{
    const double b = mix->block;
    struct shuf__chi_squared x = {0, (b - 1) * (mix->sources - 1)};
    for (size_t s = 0; s < mix->sources; s++) {
        const double expected = blocks * (double)mix->weights[s] / b;
        if (expected < SHUF__LEAST_EXPECTED)
            return;
        for (size_t i = 0; i < mix->block; i++) {
            const double off = table[i * mix->sources + s] - expected;
            x.sum += off * off / expected * (b - 1) / b;
        }
    }
    shuf__find_chi_squared(run->findings, mix->block, x, "places; %s", mix->name);
}

/* Of a pair of positions in a block, or in two blocks. The weights divide the block, so the numbers
 * of records are the same in all blocks. */
static void judge_pair(const struct shuf__order_run *run, const struct mix *mix,
                       const double *count, bool one_block, const char *detail)
{
    const double b = mix->block;
    double *p = shuf__order_allocate((size_t)mix->sources * mix->sources, sizeof *p);
    for (uint32_t s = 0; s < mix->sources; s++)
        for (uint32_t t = 0; t < mix->sources; t++)
            p[s * mix->sources + t] = (double)mix->weights[s] / b *
                                      ((double)mix->weights[t] - (one_block && s == t)) /
                                      (b - one_block);
    shuf__order_find_counts(run, mix->block, count, p, (size_t)mix->sources * mix->sources,
                            "%s; %s", detail, mix->name);
    free(p);
}

static bool divides_block(const struct mix *mix)
{
    uint64_t all = 0;
    for (uint32_t s = 0; s < mix->sources; s++)
        all += mix->weights[s];
    return all == mix->block;
}

static void judge_arrangements(const struct shuf__order_run *run, const struct mix *mix)
{
    const struct layout at = layout_of(mix);
    const size_t square = (size_t)mix->sources * mix->sources;
    const struct shuf__sums sums = {
        .context = mix, .samples = mix->samples, .words = at.words, .add = add_arrangements};
    double *sum = shuf__order_sum(run, &sums);
    char detail[32];
    run->findings->test = "block";
    if (divides_block(mix)) {
        judge_places(run, mix, sum + at.places, 2.0 * (double)(mix->samples * run->effort));
        judge_pair(run, mix, sum + at.blocks, false, "pairs of two blocks");
    }
    for (int k = 0; k < DISTANCES; k++) {
        snprintf(detail, sizeof detail, "pairs %" PRIu32 " apart", distance_of(mix, k));
        if (divides_block(mix))
            judge_pair(run, mix, sum + at.pairs + (size_t)k * square, true, detail);
        snprintf(detail, sizeof detail, "equal, %" PRIu32 " apart", distance_of(mix, k));
        find_moments(run, mix, sum + at.equal + k * MOMENTS, detail);
    }
    for (uint32_t s = 0; s < mix->sources; s++) {
        snprintf(detail, sizeof detail, "positions, source %" PRIu32, s);
        find_moments(run, mix, sum + at.positions + (size_t)s * MOMENTS, detail);
    }
    find_moments(run, mix, sum + at.agreements, "agreements, next block");
    find_moments(run, mix, sum + at.seeds, "agreements, seeds");
    free(sum);
}

/* ---- Shares ---- */

enum { STAGES = 3, BLOCKS = 60, BLOCK = 32 };

/* Weights of all magnitudes, also Fibonacci's numbers, which make the tree deep. Returns their sum.
 */
static double draw_weights(uint64_t number, uint32_t sources, uint64_t *weights)
{
    uint64_t word = number * UINT64_C(0x9E3779B97F4A7C15), last[2] = {1, 1};
    double all = 0;
    for (uint32_t s = 0; s < sources; s++) {
        word = (word ^ word >> 29) * UINT64_C(0xBF58476D1CE4E5B9);
        weights[s] = number % 4 == 0 ? last[1] : 1 + (word >> 32) % (UINT64_C(1) << word % 31);
        all += (double)weights[s];
        const uint64_t next = last[0] + last[1];
        last[0] = last[1];
        last[1] = next;
    }
    return all;
}

enum { STAGED_MOST = 4 }; /* above the errors of random mixtures; no bound is proved */

/* The words: sources that are off by the limit or more after a block. docs/spec.md proves the limit
 * of one stage. */
static void add_shares(const struct shuf__order_run *run, const void *context, uint64_t first,
                       uint64_t end, double *sum)
{
    const bool stages = *(const bool *)context;
    for (uint64_t sample = first; sample < end; sample++) {
        const struct mix mix = {.sources = 2 + sample % 22, .block = BLOCK};
        uint64_t weights[STAGES][BLOCK];
        double off[BLOCK] = {0}, all[STAGES] = {0};
        shuf_stage stage[STAGES];
        struct reader r;
        reader_open(&r, run, &mix, BLOCK);
        for (uint64_t s = 0; s < STAGES; s++) {
            all[s] = draw_weights(STAGES * sample + s, mix.sources, weights[s]);
            stage[s] = (shuf_stage){s * BLOCKS * BLOCK, weights[s]};
        }
        r.request.stages = stage;
        r.request.stage_count = stages ? STAGES : 1;
        for (uint64_t block = 0; block < STAGES * BLOCKS; block++) {
            const uint64_t s = stages ? block / BLOCKS : 0;
            reader_read(&r, run->seed + sample, block * BLOCK, BLOCK);
            for (uint32_t i = 0; i < BLOCK; i++)
                off[r.source[i]]--;
            for (uint32_t i = 0; i < mix.sources; i++) {
                off[i] += BLOCK * (double)weights[s][i] / all[s];
                *sum += fabs(off[i]) >= (stages ? STAGED_MOST : 1.68);
            }
        }
        shuf__mixed_close(&r.mixed);
        reader_close(&r);
    }
}

static void judge_shares(const struct shuf__order_run *run)
{
    run->findings->test = "shares";
    for (int i = 0; i < (run->fault ? 1 : 2); i++) { /* orders with a fault have one stage */
        const bool stages = i == 1;
        double *sum = shuf__order_sum(
            run,
            &(struct shuf__sums){.context = &stages, .samples = 25, .words = 1, .add = add_shares});
        shuf__order_find_exact(run, BLOCK, *sum, stages ? "three stages" : "one stage");
        free(sum);
    }
}

/* ---- Pieces ---- */

/* Reads places of a mixture of `count` sources with equal weights. A block has one record of each.
 */
static void read_equal(const struct shuf__pieces *pieces, struct shuf__mixed *mixed, uint64_t seed,
                       struct mix mix, uint64_t first, uint64_t count, struct reader *r)
{
    for (uint32_t i = 0; i < mix.sources; i++)
        mix.weights[i] = 1;
    mix.block = mix.sources;
    reader_open(r, pieces->run, &mix, count);
    r->mixed = *mixed;
    reader_read(r, seed, first, count);
    *mixed = r->mixed;
}

static void row_of_blocks(const struct shuf__pieces *pieces, struct shuf__mixed *mixed,
                          uint64_t seed, uint64_t block, uint32_t *row)
{
    const uint32_t n = pieces->n;
    struct reader r;
    read_equal(pieces, mixed, seed, (struct mix){.sources = n, .records = n}, block * n, n, &r);
    for (uint32_t i = 0; i < n; i++)
        row[i] = r.source[i];
    reader_close(&r);
}

/* An epoch of a source of `count`: a block has one of its records. */
static void read_epoch(const struct shuf__pieces *pieces, uint32_t count, struct shuf__mixed *mixed,
                       uint64_t seed, uint32_t source, uint64_t epoch, uint32_t *row)
{
    const uint64_t n = pieces->n, places = n * count;
    struct reader r;
    uint32_t found = 0;
    read_equal(pieces, mixed, seed, (struct mix){.sources = count, .records = n}, epoch * places,
               places, &r);
    for (uint64_t i = 0; i < places; i++)
        if (r.source[i] == source && found < n)
            row[found++] = r.epoch[i] == epoch ? (uint32_t)r.record[i] : UINT32_MAX;
    while (found < n)
        row[found++] = UINT32_MAX; /* the source lacks a record: no permutation */
    reader_close(&r);
}

static void row_of_source(const struct shuf__pieces *pieces, struct shuf__mixed *mixed,
                          uint64_t seed, uint64_t epoch, uint32_t *row)
{
    read_epoch(pieces, 3, mixed, seed, 1, epoch, row);
}

/* The windows of a source with a windowed order: two windows of n records an epoch. */
static void row_of_windowed_source(const struct shuf__pieces *pieces, struct shuf__mixed *mixed,
                                   uint64_t seed, uint64_t epoch, uint32_t *row)
{
    const uint32_t n = pieces->n;
    const struct mix mix = {.sources = 2, .records = 2 * n, .chunk = 2, .window = n / 2};
    struct reader r;
    uint32_t record[SOURCES_MOST], found = 0;
    read_equal(pieces, mixed, seed, mix, epoch * 2 * n, 2 * n, &r);
    for (uint32_t i = 0; i < 2 * n; i++)
        if (r.source[i] == 1 && found < n)
            record[found++] = (uint32_t)r.record[i];
    shuf__order_rank(record, n, row);
    reader_close(&r);
}

/* The same epoch of both sources. */
static void row_of_two_sources(const struct shuf__pieces *pieces, struct shuf__mixed *mixed,
                               uint64_t seed, uint64_t epoch, uint32_t *row)
{
    read_epoch(pieces, 2, mixed, seed, epoch % 2, epoch / 2, row);
}

/* A block, and the first source's epoch of the same number. */
static void row_of_block_or_source(const struct shuf__pieces *pieces, struct shuf__mixed *mixed,
                                   uint64_t seed, uint64_t epoch, uint32_t *row)
{
    if (epoch % 2 == 0)
        row_of_blocks(pieces, mixed, seed, epoch / 2, row);
    else
        read_epoch(pieces, pieces->n, mixed, seed, 0, epoch / 2, row);
}

static void judge_pieces(const struct shuf__order_run *run)
{
    static const struct shuf__pieces cases[] = {
        {.name = "blocks", .n = 6, .rows = 1000, .row = row_of_blocks},
        {.name = "blocks", .n = 32, .rows = 500, .row = row_of_blocks},
        {.name = "blocks", .n = 300, .rows = 100, .row = row_of_blocks},
        {.name = "source", .n = 6, .rows = 1000, .row = row_of_source},
        {.name = "source", .n = 300, .rows = 100, .row = row_of_source},
        {.name = "windowed source", .n = 6, .rows = 1000, .row = row_of_windowed_source},
        {.name = "two sources", .n = 6, .rows = 1000, .row = row_of_two_sources},
        {.name = "two sources", .n = 300, .rows = 100, .row = row_of_two_sources},
        {.name = "block, source", .n = 6, .rows = 1000, .row = row_of_block_or_source},
        {.name = "block, source", .n = 32, .rows = 200, .row = row_of_block_or_source},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct shuf__pieces pieces = cases[i];
        pieces.run = run;
        shuf__order_judge_pieces(&pieces);
    }
}

void shuf__order_judge_mixture(const struct shuf__order_run *run)
{
    /* 100 does not divide the block, so its numbers of records differ from block to block. */
    static const struct mix mixes[] = {
        {.name = "32:16:8:8",
         .samples = 1000,
         .sources = 4,
         .block = 64,
         .weights = {32, 16, 8, 8}},
        {.name = "6:3:2:1", .samples = 2000, .sources = 4, .block = 12, .weights = {6, 3, 2, 1}},
        {.name = "70:29:1", .samples = 1000, .sources = 3, .block = 64, .weights = {70, 29, 1}},
        {.name = "70:29:1", .samples = 10, .sources = 3, .block = 4096, .weights = {70, 29, 1}},
        {.name = "1 to 8",
         .samples = 500,
         .sources = 8,
         .block = 36,
         .weights = {1, 2, 3, 4, 5, 6, 7, 8}},
    };
    judge_shares(run);
    for (size_t i = 0; i < sizeof mixes / sizeof *mixes; i++)
        judge_arrangements(run, &mixes[i]);
    judge_pieces(run);
}
