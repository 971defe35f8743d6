/* SPDX-License-Identifier: MIT
 *
 * See result.h. The job computes each part like a request for consecutive values. An algorithm
 * without random access finds the beginning of a part in the rank index. The computation of the
 * earlier parts has filled this index.
 *
 * If the backend can summarize in a pass that stores nothing, only the first and the last values of
 * the result are stored, for the samples.
 */
#include "result.h"

#include "cache/cache.h"
#include "memory/acquire.h"
#include "service.h"
#include "session_job.h"
#include "slice.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of a part. A part in host memory fits a processor's caches. A part in device memory takes
 * much longer than the host needs between two parts. */
enum { PART_HOST = 8 << 20, PART_DEVICE = 256 << 20, PART_LEAST = SHUF__BLOCK_UNIT };

/* Most values of a pass that stores nothing, which takes about a millisecond. */
enum { PASS_VALUES = 1 << 29 };

/* Most bytes of a result in one job. The user's other requests wait for the job, which takes a few
 * seconds on a few processors. */
#define MOST_BYTES (UINT64_C(16) << 30)

struct summary_job {
    struct shuf__session_job job;
    struct shuf__result_request request; /* request.session may be closed */
    struct shuf__cache *cache;
    struct shuf__pool *pool;
    struct shuf__held_workspace workspace;
    struct shuf__cache_entry *rank_index; /* NULL: none */
    struct shuf__summary summary;
    uint64_t values, done; /* the number of all values, and of those in finished parts */
    bool passes;           /* the backend stores no values */
};

static struct summary_job *summary_job_of(struct shuf__engine_job *engine_job)
{
    return (struct summary_job *)shuf__session_job_of(engine_job);
}

static bool can_pass(const struct shuf__result_request *r, const struct shuf__backend *backend)
{
    return backend->ops->passes && backend->ops->passes(&r->key.request);
}

static struct shuf__workspace needs_of(const struct shuf__backend *backend, bool passes)
{
    const bool host = passes || shuf__memory_is_host(backend->ops->own);
    const uint64_t part = host ? PART_HOST : PART_DEVICE;
    return (struct shuf__workspace){
        .kind = host ? SHUF__MEMORY_PRIVATE : SHUF__MEMORY_CUDA_PRIVATE,
        .best = passes ? PART_LEAST : part,
        .least = PART_LEAST,
    };
}

/* Whether the algorithm needs a rank index to begin in the middle of a row. */
static bool needs_rank_index(const struct shuf__request *request)
{
    const struct shuf__permutation *p = shuf__request_permutation(request);
    return p && shuf__rank_index_bytes(p->algorithm, p->n) > 0;
}

static bool can_begin_anywhere(const struct shuf__request *request,
                               const struct shuf__backend *backend)
{
    const struct shuf__permutation *p = shuf__request_permutation(request);
    return !needs_rank_index(request) ||
           (backend->ops->rank_index_limits && p->rows == 1 && p->n <= SHUF__RANK_INDEX_N_MAX);
}

bool shuf__summary_job_applies(const struct shuf__result_request *r)
{
    const struct shuf__request *request = &r->key.request;
    const struct shuf__backend *backend = shuf__engine_backend(r->engine);
    return r->transport == SHUF__TRANSPORT__TRANSPORT_NONE && !r->prefetch &&
           (r->waiter.options.fingerprint || r->waiter.options.sums) &&
           (can_pass(r, backend) ? r->shape.bytes > PART_LEAST
                                 : r->shape.bytes > needs_of(backend, false).best &&
                                       can_begin_anywhere(request, backend));
}

/* ---- Parts, on a lane's thread ---- */

/* Adds the values of this part that are among the last values of the result. The last values may be
 * in two parts. */
static shuf_status add_last(struct summary_job *s, struct shuf__backend *backend,
                            const struct shuf__block *block, uint64_t count)
{
    struct shuf__summary *summary = &s->summary;
    const uint64_t before = s->values - SHUF__SAMPLES; /* the result is larger than a part */
    const uint64_t skip = s->done < before ? shuf__smaller(before - s->done, count) : 0;
    const size_t more = (size_t)(count - skip);
    summary->n_last += (unsigned)more;
    return shuf__summary_read(backend, block, s->request.key.request.dtype, skip, more,
                              summary->last + summary->n_last - more, &s->job.error);
}

static shuf_status add_samples(struct summary_job *s, struct shuf__backend *backend,
                               const struct shuf__block *block, uint64_t count)
{
    struct shuf__summary *summary = &s->summary;
    const size_t more = (size_t)shuf__smaller(SHUF__SAMPLES - summary->n_first, count);
    if (more > 0 && shuf__summary_read(backend, block, s->request.key.request.dtype, 0, more,
                                       summary->first + summary->n_first, &s->job.error))
        return s->job.error.status;
    summary->n_first += (unsigned)more;
    return s->done + count > s->values - SHUF__SAMPLES ? add_last(s, backend, block, count)
                                                       : SHUF_OK;
}

static shuf_status add_fingerprint(struct summary_job *s, struct shuf__backend *backend,
                                   const struct shuf__block *block, uint64_t count,
                                   struct shuf__error *error)
{
    uint64_t sum;
    const unsigned width = shuf__dtype_bytes((int)s->request.key.request.dtype);
    const uint64_t index = s->request.waiter.options.fingerprint_index + s->done;
    if (!s->request.waiter.options.fingerprint)
        return SHUF_OK;
    if (backend->ops->fingerprint(backend, block, width, count, index, &sum, error))
        return error->status;
    s->summary.fingerprint += sum;
    return SHUF_OK;
}

static shuf_status add_sums(struct summary_job *s, struct shuf__backend *backend,
                            const struct shuf__block *block, uint64_t count,
                            struct shuf__error *error)
{
    struct shuf__sums sums;
    const struct shuf__request *request = &s->request.key.request;
    const struct shuf__measure measure = shuf__measure_of(request);
    if (!s->request.waiter.options.sums)
        return SHUF_OK;
    if (backend->ops->sums(backend, block, request->dtype, count, measure.centre, measure.scale,
                           &sums, error))
        return error->status;
    if (s->done == 0)
        s->summary.sums = sums;
    else
        shuf__sums_add(&s->summary.sums, &sums);
    return SHUF_OK;
}

/* A part in work. */
struct part {
    struct summary_job *job;
    uint64_t count;
};

/* The device makes these sums after the values, without a wait between them. */
static shuf_status add_up(void *context, struct shuf__backend *backend,
                          const struct shuf__block *block, struct shuf__error *error)
{
    const struct part *part = context;
    if (add_fingerprint(part->job, backend, block, part->count, error) == SHUF_OK)
        add_sums(part->job, backend, block, part->count, error);
    return error->status;
}

static shuf_status compute_part(struct summary_job *s, struct shuf__backend *backend,
                                struct shuf__block *block, struct shuf__computation *computation)
{
    uint64_t device_ns = 0;
    struct shuf__error *error = &s->job.error;
    if (shuf__keyring_reveal(s->cache->keyring, &computation->request, error))
        return error->status;
    const shuf_status status =
        shuf__backend_compute(backend, computation, block, &device_ns, error);
    shuf__keyring_conceal(&computation->request);
    s->summary.device_ns += device_ns;
    return status;
}

static shuf_status summarize_part(struct summary_job *s, struct shuf__backend *backend,
                                  struct shuf__block *block, struct shuf__rank_index *ranks)
{
    struct shuf__computation computation = {
        .request = s->request.key.request,
        .cancelled = shuf__engine_job_is_cancelled,
        .cancel_context = &s->job.engine_job,
        .rank_index = ranks,
    };
    const uint64_t most = s->workspace.bytes / shuf__dtype_bytes((int)computation.request.dtype);
    struct part part = {s, shuf__request_take(&computation.request, s->done, most)};
    computation.follow = add_up;
    computation.follow_context = &part;
    if (compute_part(s, backend, block, &computation) || add_samples(s, backend, block, part.count))
        return s->job.error.status;
    s->done += part.count;
    return SHUF_OK;
}

/* ---- Passes that store nothing, likewise ---- */

/* Computes SHUF__SAMPLES values from number `first` on. They may be in two parts. */
static shuf_status read_samples(struct summary_job *s, struct shuf__backend *backend,
                                uint64_t first, uint64_t values[SHUF__SAMPLES])
{
    struct shuf__block *block = &s->workspace.allocation->block;
    for (uint64_t done = 0, part; done < SHUF__SAMPLES; done += part) {
        struct shuf__computation computation = {.request = s->request.key.request};
        part = shuf__request_take(&computation.request, first + done, SHUF__SAMPLES - done);
        if (compute_part(s, backend, block, &computation) ||
            shuf__summary_read(backend, block, computation.request.dtype, 0, part, values + done,
                               &s->job.error))
            return s->job.error.status;
    }
    return SHUF_OK;
}

static void add_pass(struct summary_job *s, const struct shuf__pass *pass, uint64_t count)
{
    struct shuf__summary *summary = &s->summary;
    summary->fingerprint += pass->fingerprint;
    summary->device_ns += pass->device_ns;
    if (s->done == 0)
        summary->sums = pass->sums;
    else
        shuf__sums_add(&summary->sums, &pass->sums);
    s->done += count;
}

static shuf_status pass_part(struct summary_job *s, struct shuf__backend *backend,
                             const struct shuf__request *whole)
{
    struct shuf__computation computation = {
        .request = *whole,
        .cancelled = shuf__engine_job_is_cancelled,
        .cancel_context = &s->job.engine_job,
    };
    const uint64_t count = shuf__request_take(&computation.request, s->done, PASS_VALUES);
    const struct shuf__measure measure = shuf__measure_of(whole);
    struct shuf__pass pass = {
        .index = s->request.waiter.options.fingerprint_index + s->done,
        .moments = s->request.waiter.options.sums,
        .centre = measure.centre,
        .scale = measure.scale,
    };
    if (backend->ops->pass(backend, &computation, &pass, &s->job.error))
        return s->job.error.status;
    add_pass(s, &pass, count);
    return SHUF_OK;
}

static void run_passes(struct summary_job *s, struct shuf__backend *backend)
{
    struct shuf__request request = s->request.key.request;
    struct shuf__summary *summary = &s->summary;
    /* The result has more values than both samples. */
    if (read_samples(s, backend, 0, summary->first) ||
        read_samples(s, backend, s->values - SHUF__SAMPLES, summary->last) ||
        shuf__keyring_reveal(s->cache->keyring, &request, &s->job.error))
        return;
    summary->n_first = summary->n_last = SHUF__SAMPLES;
    shuf_status status = SHUF_OK;
    while (status == SHUF_OK && s->done < s->values)
        status = pass_part(s, backend, &request);
    shuf__keyring_conceal(&request);
}

/* ---- The job ---- */

static void run_summary(struct shuf__engine_job *engine_job, struct shuf__backend *backend)
{
    struct summary_job *s = summary_job_of(engine_job);
    const struct shuf__workspace needs = needs_of(backend, s->passes);
    const struct shuf__block *block;
    struct shuf__rank_index *ranks = NULL;
    if (shuf__workspace_open(&s->workspace, &needs, backend, &block, &s->job.error) ||
        (s->rank_index && !(ranks = shuf__rank_entry_open(s->rank_index, backend, &s->job.error))))
        return;
    if (s->passes) {
        run_passes(s, backend);
        return;
    }
    while (s->done < s->values)
        if (summarize_part(s, backend, &s->workspace.allocation->block, ranks))
            return;
}

/* ---- The job, on the loop's thread ---- */

static shuf_status acquire(struct summary_job *s)
{
    const struct shuf__job_memory memory = {
        .result = {.uid = s->request.key.uid},
        .workspace = needs_of(shuf__engine_backend(s->request.engine), s->passes),
    };
    if (needs_rank_index(&s->request.key.request) && !s->rank_index &&
        !(s->rank_index = shuf__rank_entry_acquire(s->cache, s->request.engine, s->request.key.uid,
                                                   &s->request.key.request, &s->job.error)))
        return s->job.error.status;
    return shuf__workspace_acquire(s->pool, &memory, false, &s->workspace, &s->job.error);
}

static enum shuf__begin begin_summary(struct shuf__engine_job *engine_job)
{
    struct summary_job *s = summary_job_of(engine_job);
    if (acquire(s))
        return shuf__pool_fail_begin(&s->job.error);
    s->job.error.status = SHUF_OK; /* an earlier begin may have failed */
    return SHUF__BEGIN_DONE;
}

static void release_summary(struct shuf__session_job *job)
{
    struct summary_job *s = (struct summary_job *)job;
    shuf__rank_entry_release(s->rank_index);
    shuf__workspace_release(s->pool, &s->workspace, s->done > 0);
}

static void reply_summary(const struct shuf__session_job *job)
{
    const struct summary_job *s = (const struct summary_job *)job;
    struct shuf__summary summary = s->summary;
    summary.device_ns = shuf__engine_job_active_ns(&job->engine_job, summary.device_ns);
    shuf__cache_count_computed(&shuf__service_of(job->session)->cache, s->request.engine);
    shuf__result_reply_summary(&s->request, &summary);
}

shuf_status shuf__summary_job_submit(const struct shuf__result_request *r,
                                     struct shuf__error *error)
{
    if (r->shape.bytes > MOST_BYTES)
        return shuf__fail(error, SHUF_NO_MEMORY,
                          "summary of %" PRIu64 " bytes: expected at most %" PRIu64
                          " in one request; request parts",
                          r->shape.bytes, MOST_BYTES);
    struct summary_job *s = calloc(1, sizeof *s);
    struct shuf__service *service = shuf__service_of(r->session);
    if (!s)
        return shuf__fail(error, SHUF_NO_MEMORY, "request: out of memory");
    s->job.engine_job.name = "shufd: summary";
    s->job.engine_job.begin = begin_summary;
    s->job.engine_job.run = run_summary;
    s->job.release = release_summary;
    s->job.reply = reply_summary;
    s->request = *r;
    s->pool = &service->pool;
    s->cache = &service->cache;
    s->values = r->shape.rows * r->shape.count;
    s->passes = can_pass(r, shuf__engine_backend(r->engine));
    if (shuf__session_job_submit(&s->job, r->engine, r->session, error) == SHUF_OK)
        return SHUF_OK;
    free(s);
    return error->status;
}
