/* SPDX-License-Identifier: MIT
 *
 * Mixtures. Each source has its share of each whole block, and the arrangement of the block is
 * uniform among those with these numbers of records. If each source has one record of a block, the
 * arrangement is a uniform permutation. The epochs of the sources are uniform permutations.
 * Arrangements and epochs are independent.
 *
 * For a block of B positions with c(i) records of source i, given these numbers, the sums below have
 * exact means and variances (multivariate hypergeometric law), also if the numbers differ from
 * block to block. Blocks are independent, so the normal law is exact for many blocks. One pair of
 * positions a block is an independent observation with exact probabilities.
 */
#include "order.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { SOURCES_MOST = 24 };

/* A mixture with the same weights at all positions. */
struct mix {
    const char *name;
    uint32_t sources;
    uint64_t block;
    uint64_t weights[SOURCES_MOST];
};

static uint32_t block_of(const struct mix *mix)
{
    return (uint32_t)mix->block;
}

/* What a thread reads of a mixture. */
struct reader {
    const struct shuf__order_run *run;
    shuf_source source[SOURCES_MOST];
    shuf_stage stage;
    shuf_mixture_request request;
    struct shuf__mixed mixed;
    uint32_t *places; /* sources of two blocks */
    uint64_t *epoch, *record;
};

static void reader_open(struct reader *r, const struct shuf__order_run *run, const struct mix *mix)
{
    *r = (struct reader){.run = run, .stage = {0, mix->weights}};
    for (uint32_t i = 0; i < mix->sources; i++)
        r->source[i].records = 1000 + i;
    r->request = (shuf_mixture_request){.block = mix->block,
                                        .sources = r->source,
                                        .source_count = mix->sources,
                                        .stages = &r->stage,
                                        .stage_count = 1};
    r->places = shuf__order_allocate(2 * mix->block, sizeof *r->places);
    r->epoch = shuf__order_allocate(2 * mix->block, sizeof *r->epoch);
    r->record = shuf__order_allocate(2 * mix->block, sizeof *r->record);
}

/* Reads some blocks, at most two. */
static const uint32_t *reader_blocks(struct reader *r, uint64_t seed, uint64_t block, size_t count,
                                     uint32_t *places)
{
    const uint64_t size = r->request.block;
    const shuf_mixed out = {.source = places, .epoch = r->epoch, .record = r->record};
    shuf__order_mixture(r->run, &r->request, &r->mixed, seed, block * size, count * size, &out);
    return places;
}

static void reader_close(struct reader *r)
{
    shuf__mixed_close(&r->mixed);
    free(r->places);
    free(r->epoch);
    free(r->record);
}

/* ---- Sums with an exact mean and variance ---------------------------------------- */

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
    const double b = (double)mix->block;
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
    const uint32_t size = block_of(mix);
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
    const double b = (double)mix->block;
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
        shuf__order_find_sum(run, block_of(mix), words[SUM], words[MEAN], words[VARIANCE],
                             "%s; %s", detail, mix->name);
}

/* ---- Arrangements ---------------------------------------------------------------- */

/* The distances of the pairs. The last one is half of a block. */
enum { DISTANCES = 4 };

static uint32_t distance_of(const struct mix *mix, int i)
{
    const uint32_t distances[DISTANCES] = {1, 2, 3, block_of(mix) / 2};
    return distances[i];
}

/* The words of arrangements: each source at each position; for each distance, pairs of sources; and
 * of two blocks; the moments. */
struct layout {
    size_t places, pairs, blocks, positions, equal, agreements, words;
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
    at.words = at.agreements + MOMENTS;
    return at;
}

static void add_block(const struct mix *mix, const struct layout *at, uint64_t number,
                      const uint32_t *places, double *sum)
{
    const size_t square = (size_t)mix->sources * mix->sources;
    for (uint32_t i = 0; i < mix->block; i++)
        sum[at->places + (size_t)i * mix->sources + places[i]]++;
    for (int k = 0; k < DISTANCES; k++) {
        const uint32_t d = distance_of(mix, k), i = (uint32_t)(number * 7919 % (mix->block - d));
        sum[at->pairs + (size_t)k * square + places[i] * mix->sources + places[i + d]]++;
        add_equal_pairs(mix, places, d, sum + at->equal + k * MOMENTS);
    }
    add_positions(mix, places, sum + at->positions);
}

/* A sample has two blocks. */
static void add_arrangements(const struct shuf__order_run *run, const void *context, uint64_t first,
                             uint64_t end, double *sum)
{
    const struct mix *mix = context;
    const struct layout at = layout_of(mix);
    struct reader r;
    reader_open(&r, run, mix);
    for (uint64_t sample = first; sample < end; sample++) {
        const uint32_t *left = reader_blocks(&r, run->seed + first, 2 * sample, 2, r.places);
        const uint32_t *right = left + mix->block, i = (uint32_t)(sample * 7919 % mix->block);
        add_block(mix, &at, 2 * sample, left, sum);
        add_block(mix, &at, 2 * sample + 1, right, sum);
        sum[at.blocks + left[i] * mix->sources + right[i]]++;
        add_agreements(mix, left, right, sum + at.agreements);
    }
    reader_close(&r);
}

/* The table of places, as in places.c: (B - 1) / B times Pearson's sum. */
static void judge_places(const struct shuf__order_run *run, const struct mix *mix,
                         const double *table)
{
    const double b = (double)mix->block;
    struct shuf__chi_squared x = {0, (b - 1) * (mix->sources - 1)};
    for (uint32_t s = 0; s < mix->sources; s++) {
        double all = 0;
        for (uint32_t i = 0; i < mix->block; i++)
            all += table[(size_t)i * mix->sources + s];
        for (uint32_t i = 0; i < mix->block; i++) {
            const double off = table[(size_t)i * mix->sources + s] - all / b;
            x.sum += off * off / (all / b);
        }
        if (all / b < SHUF__LEAST_EXPECTED)
            return;
    }
    x.sum *= (b - 1) / b;
    shuf__find_chi_squared(run->findings, block_of(mix), x, "places; %s", mix->name);
}

/* Of a pair of positions in a block, or in two blocks. The weights divide the block, so the numbers
 * of records are the same in all blocks. */
static void judge_pair(const struct shuf__order_run *run, const struct mix *mix,
                       const double *count, bool one_block, const char *detail)
{
    const double b = (double)mix->block;
    double p[SOURCES_MOST * SOURCES_MOST];
    for (uint32_t s = 0; s < mix->sources; s++)
        for (uint32_t t = 0; t < mix->sources; t++)
            p[s * mix->sources + t] =
                (double)mix->weights[s] / b *
                ((double)mix->weights[t] - (one_block && s == t)) / (b - one_block);
    shuf__order_find_counts(run, block_of(mix), count, p, (size_t)mix->sources * mix->sources,
                            "%s; %s", detail, mix->name);
}

static bool divides_block(const struct mix *mix)
{
    uint64_t all = 0;
    for (uint32_t s = 0; s < mix->sources; s++)
        all += mix->weights[s];
    return all == mix->block;
}

static void judge_arrangements(const struct shuf__order_run *run, const struct mix *mix,
                               uint64_t samples)
{
    const struct layout at = layout_of(mix);
    const size_t square = (size_t)mix->sources * mix->sources;
    const struct shuf__sums sums = {
        .context = mix, .samples = samples, .words = at.words, .add = add_arrangements};
    double *sum = shuf__order_sum(run, &sums);
    char detail[32];
    run->findings->test = "block";
    if (divides_block(mix)) {
        judge_places(run, mix, sum + at.places);
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
    free(sum);
}

/* ---- Arrangements of two seeds --------------------------------------------------- */

/* A sample is block number `sample` of the seeds 2j and 2j + 1. */
static void add_seeds(const struct shuf__order_run *run, const void *context, uint64_t first,
                      uint64_t end, double *sum)
{
    const struct mix *mix = context;
    struct reader r;
    reader_open(&r, run, mix);
    for (uint64_t sample = first; sample < end; sample++) {
        const uint64_t seed = run->seed + 2 * sample;
        reader_blocks(&r, seed, sample, 1, r.places);
        reader_blocks(&r, seed + 1, sample, 1, r.places + mix->block);
        add_agreements(mix, r.places, r.places + mix->block, sum);
    }
    reader_close(&r);
}

static void judge_seeds(const struct shuf__order_run *run, const struct mix *mix)
{
    double *sum = shuf__order_sum(
        run,
        &(struct shuf__sums){.context = mix, .samples = 125, .words = MOMENTS, .add = add_seeds});
    run->findings->test = "block";
    find_moments(run, mix, sum, "agreements, seeds");
    free(sum);
}

/* ---- Shares ---------------------------------------------------------------------- */

/* docs/spec.md proves the first limit for one stage, and names the second one for more. */
static const double limits[] = {1.68, 2};
enum { STAGES = 3, BLOCKS = 60, BLOCK = 32 };

/* Weights of all magnitudes, also those of Fibonacci, which make the tree deep. */
static void draw_weights(uint64_t number, uint32_t sources, uint64_t *weights)
{
    uint64_t word = number * UINT64_C(0x9E3779B97F4A7C15), last[2] = {1, 1};
    for (uint32_t s = 0; s < sources; s++) {
        word = (word ^ word >> 29) * UINT64_C(0xBF58476D1CE4E5B9);
        weights[s] = number % 4 == 0 ? last[1] : 1 + (word >> 32) % (UINT64_C(1) << word % 31);
        const uint64_t next = last[0] + last[1];
        last[0] = last[1];
        last[1] = next;
    }
}

struct shares {
    uint32_t sources;
    uint64_t weights[STAGES][SOURCES_MOST];
    double exact[SOURCES_MOST], count[SOURCES_MOST];
};

static double add_exact_shares(struct shares *shares, const uint64_t *weights, uint64_t positions)
{
    double all = 0, worst = 0;
    for (uint32_t s = 0; s < shares->sources; s++)
        all += (double)weights[s];
    for (uint32_t s = 0; s < shares->sources; s++) {
        shares->exact[s] += (double)(positions * weights[s]) / all;
        worst = fmax(worst, fabs(shares->exact[s] - shares->count[s]));
    }
    return worst;
}

/* The words: blocks in which a source is off by the limit or more. */
static void add_shares(const struct shuf__order_run *run, const void *context, uint64_t first,
                       uint64_t end, double *sum)
{
    const bool stages = *(const bool *)context;
    for (uint64_t sample = first; sample < end; sample++) {
        struct shares shares = {.sources = (uint32_t)(2 + sample % (SOURCES_MOST - 2))};
        struct reader r;
        shuf_stage stage[STAGES];
        const struct mix mix = {.sources = shares.sources, .block = BLOCK};
        reader_open(&r, run, &mix);
        for (uint64_t s = 0; s < STAGES; s++) {
            draw_weights(STAGES * sample + s, shares.sources, shares.weights[s]);
            stage[s] = (shuf_stage){s * BLOCKS * BLOCK, shares.weights[s]};
        }
        r.request.stages = stage;
        r.request.stage_count = stages ? STAGES : 1;
        for (uint64_t block = 0; block < STAGES * BLOCKS; block++) {
            reader_blocks(&r, run->seed + sample, block, 1, r.places);
            for (uint32_t i = 0; i < BLOCK; i++)
                shares.count[r.places[i]]++;
            *sum += add_exact_shares(&shares, shares.weights[stages ? block / BLOCKS : 0],
                                     BLOCK) >= limits[stages];
        }
        reader_close(&r);
    }
}

static void judge_shares(const struct shuf__order_run *run)
{
    run->findings->test = "shares";
    for (int i = 0; i < (run->fault ? 1 : 2); i++) { /* orders with a fault have one stage */
        const bool stages = i == 1;
        double *sum = shuf__order_sum(run, &(struct shuf__sums){.context = &stages,
                                                                .samples = 25,
                                                                .words = 1,
                                                                .add = add_shares});
        shuf__order_find_exact(run, BLOCK, *sum, stages ? "three stages" : "one stage");
        free(sum);
    }
}

/* ---- Pieces ---------------------------------------------------------------------- */

/* A mixture of `count` sources with n records each: equal weights, and a block with one record of
 * each. */
enum { PIECE_MOST = 300 };

struct equal {
    shuf_source source[PIECE_MOST];
    uint64_t weights[PIECE_MOST];
    shuf_stage stage;
    shuf_mixture_request request;
};

static void make_equal(struct equal *e, uint32_t count, uint64_t records)
{
    for (uint32_t i = 0; i < count; i++) {
        e->source[i] = (shuf_source){.records = records};
        e->weights[i] = 1;
    }
    e->stage = (shuf_stage){0, e->weights};
    e->request = (shuf_mixture_request){.block = count,
                                        .sources = e->source,
                                        .source_count = count,
                                        .stages = &e->stage,
                                        .stage_count = 1};
}

struct places {
    uint32_t *source;
    uint64_t *epoch, *record;
};

static void read_places(const struct shuf__pieces *pieces, const shuf_mixture_request *request,
                        struct shuf__mixed *mixed, uint64_t seed, uint64_t first, size_t count,
                        struct places *p)
{
    p->epoch = shuf__order_allocate(3 * count, sizeof *p->epoch);
    p->record = p->epoch + count;
    p->source = (uint32_t *)(p->record + count);
    const shuf_mixed out = {.source = p->source, .epoch = p->epoch, .record = p->record};
    shuf__order_mixture(pieces->run, request, mixed, seed, first, count, &out);
}

static void read_block(const struct shuf__pieces *pieces, struct shuf__mixed *mixed, uint64_t seed,
                       uint64_t block, uint32_t *row)
{
    struct equal e;
    struct places p;
    make_equal(&e, pieces->n, pieces->n);
    read_places(pieces, &e.request, mixed, seed, block * pieces->n, pieces->n, &p);
    for (uint32_t i = 0; i < pieces->n; i++)
        row[i] = p.source[i];
    free(p.epoch);
}

/* An epoch of a source of `count`: a block has one of its records. */
static void read_epoch(const struct shuf__pieces *pieces, uint32_t count, struct shuf__mixed *mixed,
                       uint64_t seed, uint32_t source, uint64_t epoch, uint32_t *row)
{
    const uint64_t n = pieces->n;
    struct equal e;
    struct places p;
    uint32_t found = 0;
    make_equal(&e, count, n);
    read_places(pieces, &e.request, mixed, seed, epoch * n * count, n * count, &p);
    for (uint64_t i = 0; i < n * count; i++)
        if (p.source[i] == source && found < n)
            row[found++] = p.epoch[i] == epoch ? (uint32_t)p.record[i] : UINT32_MAX;
    while (found < n)
        row[found++] = UINT32_MAX; /* the source lacks a record: no permutation */
    free(p.epoch);
}

static void row_of_blocks(const struct shuf__pieces *pieces, struct shuf__mixed *mixed,
                          uint64_t seed, uint64_t epoch, uint32_t *row)
{
    read_block(pieces, mixed, seed, epoch, row);
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
    struct equal e;
    struct places p;
    uint32_t record[PIECE_MOST], found = 0;
    make_equal(&e, 2, 2 * n);
    e.source[1].chunk = 2;
    e.source[1].window = n / 2;
    read_places(pieces, &e.request, mixed, seed, epoch * 2 * n, 2 * n, &p);
    for (uint32_t i = 0; i < 2 * n; i++)
        if (p.source[i] == 1 && found < n)
            record[found++] = (uint32_t)p.record[i];
    shuf__order_rank(record, n, row);
    free(p.epoch);
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
        read_block(pieces, mixed, seed, epoch / 2, row);
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
    static const struct {
        struct mix mix;
        uint64_t samples;
    } cases[] = {
        {{"32:16:8:8", 4, 64, {32, 16, 8, 8}}, 1000},
        {{"6:3:2:1", 4, 12, {6, 3, 2, 1}}, 2000},
        {{"7:2:1", 3, 64, {7, 2, 1}}, 1000}, /* the block has another number of each each time */
        {{"70:29:1", 3, 4096, {70, 29, 1}}, 10},
        {{"1 to 16", 16, 136, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}}, 250},
    };
    judge_shares(run);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        judge_arrangements(run, &cases[i].mix, cases[i].samples);
    judge_seeds(run, &cases[0].mix);
    judge_pieces(run);
}
