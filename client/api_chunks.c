/* SPDX-License-Identifier: MIT
 *
 * The public calls for windowed orders over unequal chunks (shuf_chunks.h), which this process
 * computes.
 */
#include "arguments.h"
#include "dtype.h"
#include "host/chunks.h"
#include "team.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct shuf_chunks {
    struct shuf__chunks plan;
};

/* ---- The plan ---- */

shuf_status shuf_chunks_make(const shuf_chunks_request *request, shuf_chunks **chunks)
{
    struct shuf__error *error = SHUF__BEGIN_LOCAL(SHUF__POINTER(request), SHUF__POINTER(chunks));
    const struct shuf__simd_ops *simd;
    pthread_t self;
    const struct shuf__computation caller = shuf__computation_of_caller(&self);
    if (error->status)
        return error->status;
    *chunks = NULL;
    if (!request->sizes)
        return shuf__fail(error, SHUF_INVALID, "sizes NULL: expected the sizes of the chunks");
    const struct shuf__chunks_request plan = {request->seed, request->epoch, request->sizes,
                                              request->count, request->window};
    shuf_chunks *made = calloc(1, sizeof *made);
    if (!made)
        return shuf__fail(error, SHUF_NO_MEMORY, "chunks: no memory");
    if (shuf__simd_choose(NULL, &simd, error) ||
        shuf__chunks_make(&made->plan, simd, &plan, &caller, error))
        free(made);
    else
        *chunks = made;
    return error->status;
}

void shuf_chunks_free(shuf_chunks *chunks)
{
    if (!chunks)
        return;
    shuf__chunks_free(&chunks->plan);
    free(chunks);
}

uint64_t shuf_chunks_length(const shuf_chunks *chunks)
{
    return chunks ? chunks->plan.n : 0;
}

/* ---- Ranges ---- */

static shuf_status check_dtype(const shuf_chunks *chunks, shuf_dtype dtype,
                               struct shuf__error *error)
{
    char number[SHUF__DTYPE_TEXT];
    if (dtype != SHUF_U32 && dtype != SHUF_U64 && dtype != SHUF_I64)
        return shuf__fail(error, SHUF_INVALID, "dtype %s: expected u32, u64 or i64",
                          shuf__dtype_label((int)dtype, number));
    if (dtype == SHUF_U32 && chunks->plan.n > UINT64_C(1) << 32)
        return shuf__fail(error, SHUF_INVALID,
                          "length %" PRIu64 ": does not fit u32; expected dtype u64",
                          chunks->plan.n);
    return SHUF_OK;
}

shuf_status shuf_chunks_fill(const shuf_chunks *chunks, uint64_t first, size_t count,
                             uint64_t stride, unsigned threads, shuf_dtype dtype, void *out)
{
    struct shuf__error *error = SHUF__BEGIN_LOCAL(SHUF__POINTER(chunks), SHUF__POINTER(out));
    const struct shuf__chunks_range range = {first, count, stride};
    pthread_t self;
    const struct shuf__computation caller = shuf__computation_of_caller(&self);
    int team;
    if (error->status || shuf__check_range(chunks->plan.n, first, count, stride, error) ||
        check_dtype(chunks, dtype, error) || shuf__team(threads, &team, error))
        return error->status;
    return shuf__chunks_fill(&chunks->plan, team, &caller, &range, shuf__dtype_bytes((int)dtype),
                             out, error);
}

shuf_status shuf_chunks_needed(const shuf_chunks *chunks, uint64_t first, size_t count,
                               uint64_t stride, uint64_t *numbers, size_t *found)
{
    struct shuf__error *error =
        SHUF__BEGIN_LOCAL(SHUF__POINTER(chunks), SHUF__POINTER(numbers), SHUF__POINTER(found));
    const struct shuf__chunks_range range = {first, count, stride};
    pthread_t self;
    const struct shuf__computation caller = shuf__computation_of_caller(&self);
    if (error->status || shuf__check_range(chunks->plan.n, first, count, stride, error))
        return error->status;
    return shuf__chunks_needed(&chunks->plan, &caller, &range, numbers, found, error);
}

/* ---- Look-ups ---- */

static shuf_status check_places(const shuf_chunks *chunks, shuf_direction direction,
                                const uint64_t *at, size_t count, struct shuf__error *error)
{
    if (direction != SHUF_FORWARD && direction != SHUF_INVERSE)
        return shuf__fail(error, SHUF_INVALID, "direction %d: expected FORWARD or INVERSE",
                          (int)direction);
    for (size_t i = 0; i < count; i++)
        if (at[i] >= chunks->plan.n)
            return shuf__fail(error, SHUF_INVALID,
                              "at[%zu] %" PRIu64 ": expected less than the length, %" PRIu64, i,
                              at[i], chunks->plan.n);
    return SHUF_OK;
}

shuf_status shuf_chunks_index(const shuf_chunks *chunks, shuf_direction direction, unsigned threads,
                              const uint64_t *at, size_t count, uint64_t *out)
{
    struct shuf__error *error =
        SHUF__BEGIN_LOCAL(SHUF__POINTER(chunks), {"at", count && !at}, {"out", count && !out});
    pthread_t self;
    const struct shuf__computation caller = shuf__computation_of_caller(&self);
    int team;
    if (error->status || shuf__check_places(at, out, count, sizeof *at, error) ||
        check_places(chunks, direction, at, count, error) || shuf__team(threads, &team, error))
        return error->status;
    if (at != out && count)
        memcpy(out, at, count * sizeof *out);
    return shuf__chunks_look_up(&chunks->plan, team, &caller, direction == SHUF_INVERSE, out, count,
                                error);
}
