/* SPDX-License-Identifier: MIT
 *
 * The public calls for weighted draws (shuf_weights.h), which this process computes.
 */
#include "arguments.h"
#include "cuda_library.h"
#include "dtype.h"
#include "host/weights.h"
#include "team.h"

#include <inttypes.h>
#include <stdlib.h>

#define END (UINT64_C(1) << 62) /* of the numbers of draws */

struct shuf_weights {
    struct shuf__weight_table table;
};

/* ---- The table ---- */

static shuf_status check_array(const struct shuf__weight_array *array, struct shuf__error *error)
{
    char number[SHUF__DTYPE_TEXT];
    if (array->type != SHUF_F64 && array->type != SHUF_F32 && array->type != SHUF_U64)
        return shuf__fail(error, SHUF_INVALID, "type %s: expected f64, f32 or u64",
                          shuf__dtype_label(array->type, number));
    if (array->count == 0 || array->count > SHUF_WEIGHTS_MOST)
        return shuf__fail(error, SHUF_INVALID, "weights: %" PRIu64 " of them, expected 1 to 2^32",
                          array->count);
    return SHUF_OK;
}

shuf_status shuf_weights_make(const void *values, shuf_dtype type, uint64_t count,
                              shuf_weights **weights)
{
    struct shuf__error *error = SHUF__BEGIN_LOCAL(SHUF__POINTER(values), SHUF__POINTER(weights));
    const struct shuf__weight_array array = {values, type, count};
    pthread_t self;
    const struct shuf__computation caller = shuf__computation_of_caller(&self);
    if (error->status)
        return error->status;
    *weights = NULL;
    if (check_array(&array, error))
        return error->status;
    shuf_weights *made = calloc(1, sizeof *made);
    if (!made)
        return shuf__fail(error, SHUF_NO_MEMORY, "weights: no memory");
    if (shuf__weight_table_make(&made->table, &array, &caller, error))
        free(made);
    else
        *weights = made;
    return error->status;
}

void shuf_weights_free(shuf_weights *weights)
{
    if (!weights)
        return;
    shuf__weight_table_free(&weights->table);
    free(weights);
}

/* ---- Draws ---- */

static shuf_status check_range(uint64_t first, uint64_t count, uint64_t stride,
                               struct shuf__error *error)
{
    if (stride == 0)
        return shuf__fail(error, SHUF_INVALID, "stride 0: expected at least 1");
    if (count && (first >= END || count - 1 > (END - 1 - first) / stride))
        return shuf__fail(error, SHUF_INVALID,
                          "first %" PRIu64 ", count %" PRIu64 ", stride %" PRIu64
                          ": expected draws with numbers below 2^62",
                          first, count, stride);
    return SHUF_OK;
}

shuf_status shuf_weights_draw(const shuf_weights *weights, uint64_t seed, uint64_t epoch,
                              uint64_t first, size_t count, uint64_t stride, unsigned threads,
                              uint64_t *out)
{
    struct shuf__error *error = SHUF__BEGIN_LOCAL(SHUF__POINTER(weights), SHUF__POINTER(out));
    pthread_t self;
    const struct shuf__computation caller = shuf__computation_of_caller(&self);
    int team;
    if (error->status || check_range(first, count, stride, error) ||
        shuf__team(threads, &team, error))
        return error->status;
    const struct shuf__weighted draws = {&weights->table, seed, epoch};
    return shuf__weighted_fill(&draws, team, &caller, first, count, stride, out, error);
}

/* ---- Samples ---- */

shuf_status shuf_weights_sample(const void *values, shuf_dtype type, uint64_t count, uint64_t seed,
                                uint64_t epoch, size_t sample, uint64_t *out)
{
    struct shuf__error *error = SHUF__BEGIN_LOCAL(SHUF__POINTER(values), SHUF__POINTER(out));
    const struct shuf__weight_array array = {values, type, count};
    pthread_t self;
    const struct shuf__computation caller = shuf__computation_of_caller(&self);
    if (error->status || check_array(&array, error))
        return error->status;
    return shuf__weighted_sample(&array, seed, epoch, &caller, sample, out, error);
}

/* ---- Device memory ---- */

/* The functions for GPUs, after a check of the weights, or NULL. */
static const struct shuf__cuda_weights *on_gpu(const struct shuf__weight_array *array,
                                               struct shuf__error *error)
{
    if (error->status || check_array(array, error))
        return NULL;
    const struct shuf__cuda_library *cuda = shuf__cuda_library(error);
    return cuda ? cuda->weights : NULL;
}

shuf_status shuf_cuda_weights_workspace(uint64_t count, size_t *bytes)
{
    struct shuf__error *error = SHUF__BEGIN_LOCAL(SHUF__POINTER(bytes));
    const struct shuf__weight_array array = {NULL, SHUF_F64, count};
    const struct shuf__cuda_weights *gpu = on_gpu(&array, error);
    return gpu ? gpu->table_bytes(count, bytes, error) : error->status;
}

shuf_status shuf_cuda_weights_make(const void *values, shuf_dtype type, uint64_t count,
                                   uint64_t *table, size_t table_bytes, void *workspace,
                                   size_t workspace_bytes, void *stream)
{
    struct shuf__error *error = SHUF__BEGIN_LOCAL(SHUF__POINTER(values), SHUF__POINTER(table));
    const struct shuf__weight_array array = {values, type, count};
    const struct shuf__scratch_memory scratch = {workspace, workspace_bytes};
    const struct shuf__cuda_weights *gpu = on_gpu(&array, error);
    if (!gpu)
        return error->status;
    const size_t needed = sizeof *table << shuf_weights_bits(count);
    if (table_bytes < needed)
        return shuf__fail(error, SHUF_INVALID, "table of %zu bytes: expected %zu", table_bytes,
                          needed);
    return gpu->table(&array, table, &scratch, stream, error);
}

shuf_status shuf_cuda_weights_draw(const uint64_t *table, uint64_t weights, uint64_t seed,
                                   uint64_t epoch, uint64_t first, size_t count, uint64_t stride,
                                   uint64_t *out, void *stream)
{
    struct shuf__error *error = SHUF__BEGIN_LOCAL(SHUF__POINTER(table), {"out", count && !out});
    const struct shuf__weight_array array = {table, SHUF_U64, weights};
    if (error->status || check_range(first, count, stride, error) || count == 0)
        return error->status;
    const struct shuf__cuda_weights *gpu = on_gpu(&array, error);
    return gpu ? gpu->draw(table, shuf_weights_bits(weights), seed, epoch, first, count, stride,
                           out, stream, error)
               : error->status;
}

shuf_status shuf_cuda_weights_sample_workspace(uint64_t count, size_t *bytes)
{
    struct shuf__error *error = SHUF__BEGIN_LOCAL(SHUF__POINTER(bytes));
    const struct shuf__weight_array array = {NULL, SHUF_F64, count};
    const struct shuf__cuda_weights *gpu = on_gpu(&array, error);
    return gpu ? gpu->sample_bytes(count, bytes, error) : error->status;
}

shuf_status shuf_cuda_weights_sample(const void *values, shuf_dtype type, uint64_t count,
                                     uint64_t seed, uint64_t epoch, size_t sample, uint64_t *out,
                                     void *workspace, size_t workspace_bytes, void *stream)
{
    struct shuf__error *error = SHUF__BEGIN_LOCAL(SHUF__POINTER(values), SHUF__POINTER(out));
    const struct shuf__weight_array array = {values, type, count};
    const struct shuf__scratch_memory scratch = {workspace, workspace_bytes};
    const struct shuf__cuda_weights *gpu = on_gpu(&array, error);
    return gpu ? gpu->sample(&array, seed, epoch, sample, out, &scratch, stream, error)
               : error->status;
}
