/* SPDX-License-Identifier: MIT
 *
 * Weighted draws. With replacement, all draws are independent, and an index has the probability of
 * its part of the weights. Without replacement, each draw is one of the indices that are left, with
 * a probability in proportion to its weight. The probabilities of ordered samples and of sets
 * follow by recursion; of two indices, the first one to be drawn is i with the probability w(i) /
 * (w(i) + w(j)), independently of other pairs. With equal weights, a sample of all indices is a
 * uniform permutation.
 */
#include "order.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Sets of weights ---- */

static double equal(uint32_t i)
{
    (void)i;
    return 1;
}

static double powers(uint32_t i) /* from 1 to 2^-60 */
{
    return ldexp(1, -(int)i);
}

static double inverses(uint32_t i)
{
    return 1.0 / (i + 1.0);
}

static double light(uint32_t i) /* half of all together have 2^-11 of the weight */
{
    return i < 32768 ? 1 : 0x1p-11;
}

static double zeros(uint32_t i)
{
    return i % 3 == 1 ? 0 : i + 1.0;
}

static double irregular(uint32_t i)
{
    return exp2(20 * fmod(i * 0.6180339887498949, 1));
}

static double
seven(uint32_t i) /* for samples: one weight of 0, and one that is nearly always first */
{
    static const double weights[] = {1, 2, 4, 8, 0, 0.25, 100};
    return weights[i];
}

static double doubling(uint32_t i)
{
    return exp2(i);
}

static double steps(uint32_t i)
{
    return pow(1.02, i);
}

static void set_make(struct shuf__weight_set *set, const char *name, uint32_t count,
                     double (*weight)(uint32_t i))
{
    double all = 0;
    *set = (struct shuf__weight_set){.name = name, .count = count};
    set->weight = shuf__order_allocate(2 * (size_t)count, sizeof *set->weight);
    set->p = set->weight + count;
    for (uint32_t j = 0; j < count; j++)
        all += set->weight[j] = weight(j);
    for (uint32_t j = 0; j < count; j++)
        set->p[j] = set->weight[j] / all;
    shuf__order_expect(shuf_weights_make(set->weight, SHUF_F64, count, &set->table));
}

static void set_free(struct shuf__weight_set *set)
{
    shuf_weights_free(set->table);
    free(set->weight);
}

/* ---- With replacement ---- */

/* Pairs are counted by their indices mod 16. The two draws of a pair are 1 and 8 positions apart,
 * or at the same position of two epochs, and of two seeds. */
enum { CLASSES = 16, SQUARE = CLASSES * CLASSES, DRAWS = 4096, STRIDE = 8 };
enum { NEIGHBOURS, STRIDES, EPOCHS, SEEDS, KINDS };

/* The words: the pairs of each kind; draws of a stride that differ; each index. */
enum { DIFFERENT = KINDS * SQUARE, INDICES };

static void add_pairs(const uint64_t *left, const uint64_t *right, double *sum)
{
    for (int i = 0; i < DRAWS; i++)
        sum[left[i] % CLASSES * CLASSES + right[i] % CLASSES]++;
}

/* Each draw is in one pair. */
static void add_pairs_apart(const uint64_t *index, int apart, double *sum)
{
    for (int i = 0; i + apart < DRAWS; i++)
        if (i / apart % 2 == 0)
            sum[index[i] % CLASSES * CLASSES + index[i + apart] % CLASSES]++;
}

/* Sample t has 4096 draws. The seeds and epochs are even, and are compared with the next odd ones.
 */
static void add_draws(const struct shuf__order_run *run, const void *context, uint64_t first,
                      uint64_t end, double *sum)
{
    const struct shuf__weight_set *set = context;
    uint64_t *index = shuf__order_allocate(2 * DRAWS, sizeof *index), *other = index + DRAWS;
    for (uint64_t t = first; t < end; t++) {
        const uint64_t seed = 2 * (run->seed + t % 8), epoch = t / 8 % 512 * 2;
        const uint64_t from = (t % 5 << 59) + t * DRAWS, rank = t % STRIDE;
        shuf__order_draws(run, set, seed, epoch, from, DRAWS, 1, index);
        for (int i = 0; i < DRAWS; i++)
            sum[INDICES + index[i]]++;
        add_pairs_apart(index, 1, sum + NEIGHBOURS * SQUARE);
        add_pairs_apart(index, STRIDE, sum + STRIDES * SQUARE);
        shuf__order_draws(run, set, seed, epoch + 1, from, DRAWS, 1, other);
        add_pairs(index, other, sum + EPOCHS * SQUARE);
        shuf__order_draws(run, set, seed + 1, epoch, from, DRAWS, 1, other);
        add_pairs(index, other, sum + SEEDS * SQUARE);
        shuf__order_draws(run, set, seed, epoch, from + rank, DRAWS / STRIDE, STRIDE, other);
        for (uint64_t i = 0; i < DRAWS / STRIDE; i++)
            sum[DIFFERENT] += other[i] != index[rank + i * STRIDE];
    }
    free(index);
}

/* The indices together whose weights are within a factor of two. So the light ones are seen even if
 * each of them is too rare. */
static void judge_octaves(const struct shuf__order_run *run, const struct shuf__weight_set *set,
                          const double *index)
{
    enum { OCTAVES = 64 };
    double count[OCTAVES] = {0}, p[OCTAVES] = {0};
    int most = INT_MIN;
    for (uint32_t j = 0; j < set->count; j++)
        if (set->p[j] > 0 && ilogb(set->p[j]) > most)
            most = ilogb(set->p[j]);
    for (uint32_t j = 0; j < set->count; j++)
        if (set->p[j] > 0) {
            count[most - ilogb(set->p[j])] += index[j];
            p[most - ilogb(set->p[j])] += set->p[j];
        }
    shuf__order_find_counts(run, set->count, count, p, OCTAVES, "by octaves, %s", set->name);
}

static void judge_draws_of(const struct shuf__order_run *run, const struct shuf__weight_set *set)
{
    static const char *const names[KINDS] = {"draws 1 apart", "draws 8 apart", "draws, epochs",
                                             "draws, seeds"};
    const struct shuf__sums sums = {
        .context = set, .samples = 16, .words = INDICES + (size_t)set->count, .add = add_draws};
    double *sum = shuf__order_sum(run, &sums);
    double class[CLASSES] = {0}, p[SQUARE], none = 0;
    for (uint32_t j = 0; j < set->count; j++) {
        class[j % CLASSES] += set->p[j];
        none += set->p[j] == 0 ? sum[INDICES + j] : 0;
    }
    for (int i = 0; i < SQUARE; i++)
        p[i] = class[i / CLASSES] * class[i % CLASSES];
    run->findings->test = "draws";
    shuf__order_find_counts(run, set->count, sum + INDICES, set->p, set->count, "%s", set->name);
    judge_octaves(run, set, sum + INDICES);
    for (int kind = 0; kind < KINDS; kind++) {
        run->findings->test = names[kind];
        shuf__order_find_counts(run, set->count, sum + kind * SQUARE, p, SQUARE, "%s", set->name);
    }
    run->findings->test = "strides";
    shuf__order_find_exact(run, set->count, sum[DIFFERENT], set->name);
    run->findings->test = "weights of 0";
    shuf__order_find_exact(run, set->count, none, set->name);
    free(sum);
}

static void judge_draws(const struct shuf__order_run *run)
{
    static const struct {
        const char *name;
        uint32_t count;
        double (*weight)(uint32_t i);
    } cases[] = {
        {"equal", 1000, equal},       {"powers of 2", 61, powers},
        {"inverses", 4097, inverses}, {"half of them light", 65536, light},
        {"a third 0", 300, zeros},    {"irregular", 100003, irregular},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct shuf__weight_set set;
        set_make(&set, cases[i].name, cases[i].count, cases[i].weight);
        judge_draws_of(run, &set);
        set_free(&set);
    }
}

/* ---- Ordered samples, 3 of 6 ---- */

enum { SEVEN = 7, ORDERED = SEVEN * SEVEN * SEVEN };

/* The words: each ordered sample; samples with which the larger one does not begin. */
static void add_ordered(const struct shuf__order_run *run, const void *context, uint64_t first,
                        uint64_t end, double *sum)
{
    for (uint64_t epoch = first; epoch < end; epoch++) {
        uint64_t index[3], all[6];
        shuf__order_sample(run, context, run->seed, epoch, 3, index);
        shuf__order_sample(run, context, run->seed, epoch, 6, all);
        sum[(index[0] * SEVEN + index[1]) * SEVEN + index[2]]++;
        sum[ORDERED] += memcmp(index, all, sizeof index) != 0;
    }
}

static void judge_ordered(const struct shuf__order_run *run)
{
    struct shuf__weight_set set;
    double p[ORDERED] = {0};
    set_make(&set, "3 of 6", SEVEN, seven);
    for (int a = 0; a < SEVEN; a++)
        for (int b = 0; b < SEVEN; b++)
            for (int c = 0; c < SEVEN; c++)
                if (a != b && a != c && b != c)
                    p[(a * SEVEN + b) * SEVEN + c] =
                        set.p[a] * set.p[b] / (1 - set.p[a]) * set.p[c] / (1 - set.p[a] - set.p[b]);
    double *sum = shuf__order_sum(
        run, &(struct shuf__sums){
                 .context = &set, .samples = 5000, .words = ORDERED + 1, .add = add_ordered});
    shuf__order_find_counts(run, SEVEN, sum, p, ORDERED, "3 of 6, ordered");
    shuf__order_find_exact(run, SEVEN, sum[ORDERED], "3 of 6 begin 6 of 6");
    free(sum);
    set_free(&set);
}

/* ---- Sets, 4 of 10, and two samples ---- */

enum { TEN = 10, FOUR = 4, SETS = 1 << TEN, FIRSTS = SETS, SEED_FIRSTS = FIRSTS + TEN * TEN };

/* The words: each set; the first indices of two epochs, and of two seeds. */
static void add_sets(const struct shuf__order_run *run, const void *context, uint64_t first,
                     uint64_t end, double *sum)
{
    for (uint64_t sample = first; sample < end; sample++) {
        const uint64_t seed = 2 * run->seed, epoch = 2 * sample;
        uint64_t index[FOUR], other[FOUR];
        unsigned set = 0;
        shuf__order_sample(run, context, seed, epoch, FOUR, index);
        for (int i = 0; i < FOUR; i++)
            set |= 1U << index[i];
        sum[set]++;
        shuf__order_sample(run, context, seed, epoch + 1, FOUR, other);
        sum[FIRSTS + index[0] * TEN + other[0]]++;
        shuf__order_sample(run, context, seed + 1, epoch, FOUR, other);
        sum[SEED_FIRSTS + index[0] * TEN + other[0]]++;
    }
}

/* The probability that the first draws are this set: its last draw was one of them. */
static void find_sets(const double *part, double *p)
{
    p[0] = 1;
    for (unsigned set = 1; set < SETS; set++)
        for (int j = 0; j < TEN; j++) {
            const unsigned before = set & ~(1U << j);
            double left = 1;
            for (int k = 0; k < TEN; k++)
                left -= before >> k & 1 ? part[k] : 0;
            if (before != set)
                p[set] += p[before] * part[j] / left;
        }
}

static void judge_sets(const struct shuf__order_run *run)
{
    struct shuf__weight_set set;
    double p[SETS] = {0}, q[TEN * TEN], inclusion[TEN] = {0}, included[TEN] = {0}, samples = 0;
    set_make(&set, "4 of 10", TEN, doubling);
    find_sets(set.p, p);
    double *sum = shuf__order_sum(run, &(struct shuf__sums){.context = &set,
                                                            .samples = 2500,
                                                            .words = SEED_FIRSTS + TEN * TEN,
                                                            .add = add_sets});
    for (unsigned s = 0; s < SETS; s++) {
        p[s] *= __builtin_popcount(s) == FOUR;
        samples += sum[s];
        for (int j = 0; j < TEN; j++) {
            inclusion[j] += s >> j & 1 ? p[s] : 0;
            included[j] += s >> j & 1 ? sum[s] : 0;
        }
    }
    for (int i = 0; i < TEN * TEN; i++)
        q[i] = set.p[i / TEN] * set.p[i % TEN];
    shuf__order_find_counts(run, TEN, sum, p, SETS, "4 of 10, sets");
    for (int j = 0; j < TEN; j++) {
        if (samples * inclusion[j] >= SHUF__LEAST_EXPECTED &&
            samples * (1 - inclusion[j]) >= SHUF__LEAST_EXPECTED)
            shuf__order_find_sum(run, TEN, included[j], samples * inclusion[j],
                                 samples * inclusion[j] * (1 - inclusion[j]), "4 of 10, index %d",
                                 j);
    }
    shuf__order_find_counts(run, TEN, sum + FIRSTS, q, TEN * TEN, "first of two epochs");
    shuf__order_find_counts(run, TEN, sum + SEED_FIRSTS, q, TEN * TEN, "first of two seeds");
    free(sum);
    set_free(&set);
}

/* ---- Large samples ---- */

/* The words: the first index, the second index, and the pairs (j, n - 1 - j) in this order. */
static void add_large(const struct shuf__order_run *run, const void *context, uint64_t first,
                      uint64_t end, double *sum)
{
    const struct shuf__weight_set *set = context;
    const uint32_t n = set->count;
    uint64_t *index = shuf__order_allocate(2 * (size_t)n, sizeof *index), *place = index + n;
    for (uint64_t epoch = first; epoch < end; epoch++) {
        shuf__order_sample(run, set, run->seed, epoch, n, index);
        for (uint32_t i = 0; i < n; i++)
            place[index[i]] = i;
        sum[index[0]]++;
        sum[n + index[1]]++;
        for (uint32_t j = 0; j < n / 2; j++)
            sum[2 * n + j] += place[j] < place[n - 1 - j];
    }
    free(index);
}

static struct shuf__chi_squared compare_pairs(const struct shuf__weight_set *set,
                                              const double *before, double samples)
{
    const double *w = set->weight;
    const uint32_t n = set->count;
    struct shuf__chi_squared x = {0, 0};
    for (uint32_t j = 0; j < n / 2; j++) {
        const double p = w[j] / (w[j] + w[n - 1 - j]), variance = samples * p * (1 - p);
        if (variance < SHUF__LEAST_EXPECTED)
            continue;
        x.sum += (before[j] - samples * p) * (before[j] - samples * p) / variance;
        x.dof++;
    }
    return x;
}

static void judge_large(const struct shuf__order_run *run)
{
    enum { N = 400, SAMPLES = 750 };
    struct shuf__weight_set set;
    double second[N] = {0};
    set_make(&set, "400 of 400", N, steps);
    for (int j = 0; j < N; j++)
        for (int i = 0; i < N; i++)
            second[j] += i == j ? 0 : set.p[i] * set.p[j] / (1 - set.p[i]);
    double *sum = shuf__order_sum(
        run, &(struct shuf__sums){
                 .context = &set, .samples = SAMPLES, .words = 3 * N, .add = add_large});
    shuf__order_find_counts(run, N, sum, set.p, N, "first of 400");
    shuf__order_find_counts(run, N, sum + N, second, N, "second of 400");
    shuf__find_chi_squared(run->findings, N,
                           compare_pairs(&set, sum + 2 * N, SAMPLES * (double)run->effort),
                           "pairs in 400 of 400");
    free(sum);
    set_free(&set);
}

/* ---- Equal weights ---- */

static void row_of_sample(const struct shuf__pieces *pieces, struct shuf__mixed *mixed,
                          uint64_t seed, uint64_t epoch, uint32_t *row)
{
    uint64_t *index = shuf__order_allocate(pieces->n, sizeof *index);
    (void)mixed;
    shuf__order_sample(pieces->run, pieces->context, seed, epoch, pieces->n, index);
    for (uint32_t i = 0; i < pieces->n; i++)
        row[i] = (uint32_t)index[i];
    free(index);
}

static void judge_equal(const struct shuf__order_run *run)
{
    static const struct {
        uint32_t n;
        uint64_t rows;
    } cases[] = {{6, 1000}, {32, 500}, {300, 100}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct shuf__weight_set set;
        set_make(&set, "equal", cases[i].n, equal);
        shuf__order_judge_pieces(&(struct shuf__pieces){.name = "equal sample",
                                                        .run = run,
                                                        .context = &set,
                                                        .n = cases[i].n,
                                                        .rows = cases[i].rows,
                                                        .row = row_of_sample});
        set_free(&set);
    }
}

void shuf__order_judge_weighted(const struct shuf__order_run *run)
{
    judge_draws(run);
    run->findings->test = "sample";
    judge_ordered(run);
    judge_sets(run);
    judge_large(run);
    judge_equal(run);
}
