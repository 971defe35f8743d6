/* SPDX-License-Identifier: MIT
 *
 * The public calls for mixtures (shuf_mixture.h), which this process computes.
 */
#include "arguments.h"
#include "cuda_library.h"
#include "host/cancelled.h"
#include "host/mixture.h"
#include "interrupt.h"
#include "team.h"

#include <inttypes.h>
#include <stdlib.h>

struct shuf_mixture {
    struct shuf__mixture plan;
    struct shuf__mixture_readers *readers;
};

/* ---- The plan ---- */

static shuf_status no_memory(struct shuf__error *error)
{
    return shuf__fail(error, SHUF_NO_MEMORY, "mixture: no memory");
}

static shuf_status make_plan(const shuf_mixture_request *request, shuf_mixture *mixture,
                             struct shuf__error *error)
{
    struct shuf__data_set *sources = calloc(request->source_count, sizeof *sources);
    struct shuf__weights *stages = calloc(request->stage_count, sizeof *stages);
    const struct shuf__simd_ops *simd;
    if (!sources || !stages)
        no_memory(error);
    for (size_t i = 0; sources && i < request->source_count; i++) {
        const shuf_source *source = &request->sources[i];
        sources[i].records = source->records;
        sources[i].epochs = source->epochs;
        sources[i].windows.chunk = source->chunk;
        sources[i].windows.window = source->window;
    }
    for (size_t s = 0; stages && s < request->stage_count; s++) {
        stages[s] = (struct shuf__weights){request->stages[s].first, request->stages[s].weights};
        if (!stages[s].weights)
            shuf__fail(error, SHUF_INVALID, "weights of stage %zu: NULL", s);
    }
    if (!error->status && !shuf__simd_choose(NULL, &simd, error))
        shuf__mixture_make(&mixture->plan, simd, request->seed, request->block, sources,
                           request->source_count, stages, request->stage_count, error);
    free(sources);
    free(stages);
    return error->status;
}

shuf_status shuf_mixture_make(const shuf_mixture_request *request, shuf_mixture **mixture)
{
    struct shuf__error *error = SHUF__BEGIN_LOCAL(SHUF__POINTER(request), SHUF__POINTER(mixture));
    if (error->status)
        return error->status;
    *mixture = NULL;
    if (request->source_count == 0 || request->source_count > SHUF_SOURCES_MOST)
        return shuf__fail(error, SHUF_INVALID, "sources: %zu of them, expected 1 to %d",
                          request->source_count, SHUF_SOURCES_MOST);
    if (!request->sources || !request->stages || request->stage_count == 0)
        return shuf__fail(error, SHUF_INVALID, "%s: expected at least one",
                          request->sources ? "stages" : "sources");
    shuf_mixture *made = calloc(1, sizeof *made);
    if (made)
        made->readers = shuf__mixture_readers_new();
    if (!made || !made->readers)
        no_memory(error);
    else
        make_plan(request, made, error);
    if (error->status) {
        shuf_mixture_free(made);
        return error->status;
    }
    *mixture = made;
    return SHUF_OK;
}

void shuf_mixture_free(shuf_mixture *mixture)
{
    if (!mixture)
        return;
    shuf__mixture_readers_free(mixture->readers);
    shuf__mixture_free(&mixture->plan);
    free(mixture);
}

uint64_t shuf_mixture_length(const shuf_mixture *mixture)
{
    return mixture ? mixture->plan.length : 0;
}

/* ---- Places ---- */

shuf_status shuf_mixture_fill(shuf_mixture *mixture, uint64_t first, size_t count, uint64_t stride,
                              unsigned threads, const shuf_mixed *out)
{
    struct shuf__error *error = SHUF__BEGIN_LOCAL(SHUF__POINTER(mixture), SHUF__POINTER(out));
    pthread_t self;
    const struct shuf__computation caller = shuf__computation_of_caller(&self);
    int team;
    if (error->status || shuf__check_range(mixture->plan.length, first, count, stride, error) ||
        shuf__team(threads, &team, error))
        return error->status;
    const struct shuf__places places = {out->index, out->source, out->epoch, out->record};
    return shuf__mixture_fill(&mixture->plan, mixture->readers, team, &caller, first, count, stride,
                              &places, error);
}

shuf_status shuf_cuda_mixture_workspace(const shuf_mixture *mixture, size_t count, size_t *bytes)
{
    struct shuf__error *error = SHUF__BEGIN_LOCAL(SHUF__POINTER(mixture), SHUF__POINTER(bytes));
    const struct shuf__cuda_library *cuda = error->status ? NULL : shuf__cuda_library(error);
    if (cuda)
        *bytes = cuda->mixture_bytes(&mixture->plan, count);
    return error->status;
}

shuf_status shuf_cuda_mixture_fill(const shuf_mixture *mixture, uint64_t first, size_t count,
                                   uint64_t *index, void *workspace, size_t workspace_bytes,
                                   void *stream)
{
    struct shuf__error *error =
        SHUF__BEGIN_LOCAL(SHUF__POINTER(mixture), {"index", count && !index});
    const struct shuf__scratch_memory scratch = {workspace, workspace_bytes};
    if (error->status || shuf__check_range(mixture->plan.length, first, count, 1, error) ||
        count == 0)
        return error->status;
    const struct shuf__cuda_library *cuda = shuf__cuda_library(error);
    return cuda ? cuda->mixture(&mixture->plan, first, count, index, &scratch, stream, error)
                : error->status;
}

static shuf_status check_place(const struct shuf__mixture *plan, const struct shuf__place *place,
                               size_t i, struct shuf__error *error)
{
    if (place->source >= plan->source_count)
        return shuf__fail(error, SHUF_INVALID,
                          "source[%zu] %" PRIu32 ": expected less than %" PRIu32, i, place->source,
                          plan->source_count);
    if (place->record >= plan->sources[place->source].records)
        return shuf__fail(error, SHUF_INVALID,
                          "record[%zu] %" PRIu64 ": expected less than %" PRIu64
                          ", the records of source %" PRIu32,
                          i, place->record, plan->sources[place->source].records, place->source);
    return SHUF_OK;
}

enum { ASKED = 256 }; /* places between two questions to shuf_set_interrupt()'s function */

shuf_status shuf_mixture_positions(const shuf_mixture *mixture, size_t count, const shuf_mixed *in,
                                   uint64_t *positions)
{
    struct shuf__error *error =
        SHUF__BEGIN_LOCAL(SHUF__POINTER(mixture), SHUF__POINTER(in), SHUF__POINTER(positions));
    if (error->status)
        return error->status;
    if (!in->source || !in->epoch || !in->record)
        return shuf__fail(error, SHUF_INVALID, "in: expected source, epoch and record");
    for (size_t i = 0; i < count; i++) {
        const struct shuf__place place = {in->epoch[i], in->record[i], in->source[i]};
        if (i % ASKED == 0 && shuf__is_interrupted(0))
            return shuf__fail_cancelled(error);
        if (check_place(&mixture->plan, &place, i, error))
            return error->status;
        positions[i] = shuf__mixture_position(&mixture->plan, &place);
    }
    return SHUF_OK;
}

/* ---- Counts ---- */

shuf_status shuf_mixture_counts(const shuf_mixture *mixture, uint64_t position, uint64_t *counts)
{
    struct shuf__error *error = SHUF__BEGIN_LOCAL(SHUF__POINTER(mixture), SHUF__POINTER(counts));
    if (error->status)
        return error->status;
    if (position > mixture->plan.length)
        return shuf__fail(error, SHUF_INVALID,
                          "position %" PRIu64 ": expected at most the length, %" PRIu64, position,
                          mixture->plan.length);
    shuf__mixture_counts(&mixture->plan, position, counts);
    return SHUF_OK;
}

shuf_status shuf_mixture_exhausted(const shuf_mixture *mixture, uint64_t *positions)
{
    struct shuf__error *error = SHUF__BEGIN_LOCAL(SHUF__POINTER(mixture), SHUF__POINTER(positions));
    if (!error->status)
        shuf__mixture_exhausted(&mixture->plan, positions);
    return error->status;
}
