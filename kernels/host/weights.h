/* SPDX-License-Identifier: MIT
 *
 * Weighted draws by the host. docs/spec.md, "Weighted draws".
 */
#ifndef SHUF__HOST_WEIGHTS_H
#define SHUF__HOST_WEIGHTS_H

#include "backend.h"
#include "shuf/weights.h"
#include "simd/simd_ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Weights of the type F64, F32 or U64. */
struct shuf__weight_array {
    const void *values;
    shuf_dtype type;
    uint64_t count;
};

/* The errors of weights: weights[i], which has another number here, is none; all are 0; so many are
 * not above 0. */
shuf_status shuf__bad_weight(const struct shuf__weight_array *weights, uint64_t i, uint64_t number,
                             struct shuf__error *error);
shuf_status shuf__no_weight(struct shuf__error *error);
shuf_status shuf__sample_too_large(uint64_t sample, uint64_t most, struct shuf__error *error);

/* A table for draws with replacement: 8 bytes for each of the 2^bits columns. */
struct shuf__weight_table {
    const struct shuf__simd_ops *simd;
    struct shuf__block block;
    uint64_t *column;
    unsigned bits;
};

/* `computation` has only the caller's question whether it is cancelled. Frees the table on failure.
 */
shuf_status shuf__weight_table_make(struct shuf__weight_table *table,
                                    const struct shuf__weight_array *weights,
                                    const struct shuf__computation *computation,
                                    struct shuf__error *error);
void shuf__weight_table_free(struct shuf__weight_table *table);

/* Draws of a seed and an epoch. */
struct shuf__weighted {
    const struct shuf__weight_table *table;
    uint64_t seed, epoch;
};

/* Writes `count` draws, those with the numbers first, first + stride, ..., by a team of threads. */
shuf_status shuf__weighted_fill(const struct shuf__weighted *draws, int threads,
                                const struct shuf__computation *computation, uint64_t first,
                                uint64_t count, uint64_t stride, uint64_t *out,
                                struct shuf__error *error);

/* Writes the first `sample` indices of the order without replacement. Fails with SHUF_INVALID if
 * fewer weights are above 0. */
shuf_status shuf__weighted_sample(const struct shuf__weight_array *weights, uint64_t seed,
                                  uint64_t epoch, const struct shuf__computation *computation,
                                  uint64_t sample, uint64_t *out, struct shuf__error *error);

#ifdef __cplusplus
}
#endif

#endif
