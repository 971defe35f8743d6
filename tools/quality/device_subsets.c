/* SPDX-License-Identifier: MIT
 *
 * See device_subsets.h. The matrix has each set of positions several times. The code uses each set
 * once: in the column of its two least positions. Centred cosines of different sets are
 * uncorrelated. For each size of sets, the best set is judged as the best of many.
 */
#include "device_subsets.h"

#include "run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FREQUENCIES = 12, SIZES = 6, LEAST_BLOCKS = 100000 };

/* The numbers of the tested frequencies: 1, 1.5, ..., 4.5, and some larger ones. */
static const unsigned frequency[FREQUENCIES] = {1, 2, 3, 4, 5, 6, 7, 8, 11, 15, 19, 27};

struct best {
    double z, t;
    uint64_t count;
};

static void take(struct best *best, double z, double t)
{
    best->count++;
    if (fabs(z) > fabs(best->z)) {
        best->z = z;
        best->t = t;
    }
}

/* Reads the means of products. Rows are single values, pairs and triples; columns are pairs. The
 * code takes only products of a pair and later positions. */
static void read_gram(const double *gram, double blocks, double t, struct best best[SIZES])
{
    const double scale = 1 / sqrt(blocks);
    unsigned column = 0;
    for (unsigned p = 0; p < 32; p++)
        for (unsigned q = p + 1; q < 32; q++, column++) {
            const double *row = gram + column;
            for (unsigned r = 0; r < 32; r++, row += SHUF__DEVICE_PAIRS)
                if (r > q)
                    take(&best[3], *row * scale, t);
            for (unsigned r = 0; r < 32; r++)
                for (unsigned s = r + 1; s < 32; s++, row += SHUF__DEVICE_PAIRS)
                    if (r > q)
                        take(&best[4], *row * scale, t);
            for (unsigned r = 0; r < 32; r++)
                for (unsigned s = r + 1; s < 32; s++)
                    for (unsigned u = s + 1; u < 32; u++, row += SHUF__DEVICE_PAIRS)
                        if (r > q)
                            take(&best[5], *row * scale, t);
        }
}

/* Adds the first `values` values, at frequency `number`, to the matrix. Adds their number to *done.
 */
static shuf_status add_all(struct shuf__device *device, const struct shuf__device_stream *request,
                           unsigned number, uint64_t values, double *gram, uint64_t *done,
                           struct shuf__error *error)
{
    struct shuf__device_stream part = *request;
    shuf_status status = SHUF_OK;
    *done = 0;
    while (*done < values && status == SHUF_OK && !shuf__run_interrupted()) {
        const uint64_t left = values - *done;
        part.first = *done;
        part.count = left < SHUF__DEVICE_UNIT ? left : SHUF__DEVICE_UNIT;
        status =
            shuf__device_count_subsets(device, &part, (number + 1) * SHUF__FREQUENCY,
                                       request->mean[number], request->scale[number], gram, error);
        *done += part.count;
    }
    return status;
}

/* Whether the mean of a product of SIZES - 1 cosines over so many blocks is nearly normal. */
static bool are_enough(const struct shuf__stream_run_options *options, unsigned number,
                       double blocks)
{
    const double kurtosis = pow(options->law->cosine[number].fourth, SIZES - 1);
    return blocks >= LEAST_BLOCKS && kurtosis <= 0.01 * blocks;
}

static void find(const struct best best[SIZES], uint64_t values, unsigned frequencies,
                 struct shuf__findings *findings)
{
    findings->test = "subsets";
    for (unsigned k = 3; k < SIZES; k++) {
        const double one = fmin(shuf__normal_p(best[k].z), 1 - 1e-15);
        if (best[k].count > 0)
            shuf__find(findings, 0, best[k].z, 0, -expm1((double)best[k].count * log1p(-one)),
                       "%u of %.3g, %u t, %.3g", k, (double)values, frequencies, best[k].t);
    }
}

shuf_status shuf__device_judge_subsets(struct shuf__device *device,
                                       const struct shuf__stream_run_options *options,
                                       const struct shuf__device_stream *request, uint64_t values,
                                       struct shuf__findings *findings, struct shuf__error *error)
{
    const size_t size = (size_t)SHUF__DEVICE_FACTORS * SHUF__DEVICE_PAIRS;
    struct best best[SIZES] = {{0}};
    shuf_status status = SHUF_OK;
    unsigned taken = 0;
    values = values / SHUF__SUPERBLOCK * SHUF__SUPERBLOCK;
    double *gram = malloc(size * sizeof *gram);
    if (!gram)
        return shuf__fail(error, SHUF_NO_MEMORY, "no memory");
    for (unsigned f = 0; f < FREQUENCIES && status == SHUF_OK && !shuf__run_interrupted(); f++) {
        uint64_t done;
        memset(gram, 0, size * sizeof *gram);
        if (options->progress)
            fprintf(stderr, "\rsubsets: %u of %d frequencies \033[K", f, FREQUENCIES);
        status = add_all(device, request, frequency[f], values, gram, &done, error);
        const double blocks = (double)(done / SHUF__BLOCK);
        if (status == SHUF_OK && done == values && are_enough(options, frequency[f], blocks)) {
            read_gram(gram, blocks, (frequency[f] + 1) * SHUF__FREQUENCY, best);
            taken++;
        }
    }
    free(gram);
    if (status == SHUF_OK)
        find(best, values, taken, findings);
    return status;
}
