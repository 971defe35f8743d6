/* SPDX-License-Identifier: MIT
 *
 * The public calls that compute in this process (shuf_local.h). Requests are checked by the same
 * functions as those to a daemon.
 */
#include "arguments.h"
#include "cpu/cpu.h"
#include "cuda_library.h"
#include "host/cancelled.h"
#include "host/host.h"
#include "host/permute.h"
#include "host/shuffle.h"
#include "interrupt.h"
#include "request_message.h"
#include "slice.h"
#include "team.h"

#include <inttypes.h>

/* ---- Requests ---- */

static shuf_status refuse_key(const struct shuf__request *request, struct shuf__error *error)
{
    if (request->key.name[0] == '\0')
        return SHUF_OK;
    return shuf__fail(error, SHUF_INVALID,
                      "key %s: a named key never leaves its daemon; expected a seed, or a daemon",
                      request->key.name);
}

/* Makes a request whose result fits `bytes` bytes. The message has the lists of RANKS. */
static shuf_status make(const shuf_request *from, size_t bytes, struct shuf__request_message *m,
                        struct shuf__error *error)
{
    if (shuf__request_message_make(m, from, error) || refuse_key(&m->request, error))
        return error->status;
    if (m->request.kind == SHUF__BUFFER)
        return shuf__fail(error, SHUF_INVALID,
                          "kind BUFFER: has no values; expected PERMUTATION, NUMBERS or RANKS");
    if (bytes < m->shape.bytes)
        return shuf__refuse_bytes(from, &m->shape, bytes, error);
    return SHUF_OK;
}

static shuf_status make_fill(const shuf_request *from, size_t bytes,
                             struct shuf__request_message *m, struct shuf__error *error)
{
    if (from->kind == SHUF_RECORDS)
        return shuf__fail(error, SHUF_INVALID,
                          "kind RECORDS: a shuffle needs records; expected PERMUTATION, NUMBERS or "
                          "RANKS");
    return make(from, bytes, m, error);
}

/* The calls that fill return no summary, so they refuse a request for one. */
static shuf_status refuse_summary(const shuf_request *request, struct shuf__error *error)
{
    const bool numbers = request->kind == SHUF_NUMBERS;
    if (numbers && request->numbers.moments)
        return shuf__fail(error, SHUF_INVALID,
                          "moments: a fill returns none; expected false, or shuf_summarize()");
    if (numbers ? request->numbers.fingerprint
                : request->kind == SHUF_PERMUTATION && request->permutation.fingerprint)
        return shuf__fail(error, SHUF_INVALID,
                          "fingerprint: a fill returns none; expected false, and then "
                          "shuf_host_fingerprint() or shuf_cuda_fingerprint()");
    return SHUF_OK;
}

static shuf_status make_shuffle(const shuf_records *from, const void *in, const void *out,
                                size_t bytes, struct shuf__request_message *m,
                                struct shuf__error *error)
{
    const shuf_request request = {SHUF_RECORDS, .records = *from};
    if (make(&request, bytes, m, error))
        return error->status;
    if (shuf__overlap(in, out, m->shape.bytes))
        return shuf__fail(error, SHUF_INVALID,
                          "in and out overlap: expected two arrays of %" PRIu64 " bytes",
                          m->shape.bytes);
    return SHUF_OK;
}

static shuf_status check_width(unsigned width, struct shuf__error *error)
{
    return width == 2 || width == 4 || width == 8
               ? SHUF_OK
               : shuf__fail(error, SHUF_INVALID, "width %u: expected 2, 4 or 8", width);
}

/* ---- Host memory ---- */

static shuf_status check_alignment(const void *out, unsigned width, struct shuf__error *error)
{
    return (uintptr_t)out % width == 0
               ? SHUF_OK
               : shuf__fail(error, SHUF_INVALID, "out %p: expected a multiple of %u", out, width);
}

/* A shuffle is faster with a workspace, and a plan needs one. */
static shuf_status take_workspace(const struct shuf__request *request, int team,
                                  struct shuf__block *workspace, struct shuf__error *error)
{
    const struct shuf__workspace needs = shuf__host_workspace(team, request);
    struct shuf__error ignored;
    if (needs.best == 0)
        return SHUF_OK;
    if (needs.least)
        return shuf__host_alloc(SHUF__MEMORY_PRIVATE, needs.least, workspace, error);
    shuf__host_alloc(SHUF__MEMORY_PRIVATE, needs.best, workspace, &ignored);
    return SHUF_OK;
}

static shuf_status compute(const struct shuf__request *request, const struct shuf__block *in,
                           bool has_workspace, unsigned threads, void *out,
                           struct shuf__error *error)
{
    pthread_t self;
    struct shuf__computation computation = shuf__computation_of_caller(&self);
    struct shuf__block workspace = {0};
    const struct shuf__simd_ops *simd;
    int team;
    if (shuf__simd_choose(NULL, &simd, error) || shuf__team(threads, &team, error) ||
        (has_workspace && take_workspace(request, team, &workspace, error)))
        return error->status;
    computation.request = *request;
    computation.input = in;
    computation.workspace = workspace.memory ? &workspace : NULL;
    if (!shuf__cpu_compute(simd, team, &computation, out))
        shuf__fail_cancelled(error);
    shuf__host_free(&workspace);
    return error->status;
}

shuf_status shuf_host_fill(const shuf_request *request, unsigned threads, void *out, size_t bytes)
{
    struct shuf__error *error = SHUF__BEGIN_LOCAL(SHUF__POINTER(request), SHUF__POINTER(out));
    struct shuf__request_message m;
    if (error->status || refuse_summary(request, error) || make_fill(request, bytes, &m, error) ||
        check_alignment(out, shuf__dtype_bytes(m.request.dtype), error))
        return error->status;
    return compute(&m.request, NULL, true, threads, out, error);
}

enum { WORKSPACE_ALIGNMENT = 64 }; /* of `out`, for a shuffle with a workspace (host/shuffle.h) */

shuf_status shuf_host_shuffle(const shuf_records *records, unsigned threads, const void *in,
                              void *out, size_t bytes)
{
    struct shuf__error *error =
        SHUF__BEGIN_LOCAL(SHUF__POINTER(records), SHUF__POINTER(in), SHUF__POINTER(out));
    struct shuf__request_message m;
    if (error->status || make_shuffle(records, in, out, bytes, &m, error))
        return error->status;
    const struct shuf__block input = {.memory = (void *)(uintptr_t)in, .host = in, .bytes = bytes};
    const bool is_aligned = (uintptr_t)out % WORKSPACE_ALIGNMENT == 0;
    return compute(&m.request, &input, is_aligned, threads, out, error);
}

static shuf_status refuse_compaction(const struct shuf__request *request, struct shuf__error *error)
{
    if (shuf_algorithm_has_random_access(request->look_up.permutation.algorithm))
        return refuse_key(request, error);
    return shuf__fail(error, SHUF_INVALID,
                      "algorithm: a look-up of philox24 or lcg needs counts, which a daemon keeps; "
                      "expected primefold, or a daemon");
}

shuf_status shuf_host_index(const shuf_permutation *permutation, shuf_direction direction,
                            unsigned threads, const uint64_t *at, size_t count, uint64_t *out)
{
    struct shuf__error *error = SHUF__BEGIN_LOCAL(SHUF__POINTER(permutation));
    pthread_t self;
    struct shuf__computation computation = shuf__computation_of_caller(&self);
    const struct shuf__simd_ops *simd;
    int team;
    if (error->status ||
        shuf__look_up_arguments(permutation, direction, at, count, out, &computation.request,
                                error) ||
        refuse_compaction(&computation.request, error) || shuf__simd_choose(NULL, &simd, error) ||
        shuf__team(threads, &team, error))
        return error->status;
    if (at != out && count)
        memcpy(out, at, count * sizeof *out);
    return shuf__host_look_up(simd, team, &computation, out, count, error) == SHUF_CANCELLED
               ? shuf__fail_cancelled(error)
               : error->status;
}

/* A fingerprint is a sum, so its parts can be computed one after the other. `index` is the number
 * of the first value. */
static shuf_status add_up(unsigned threads, const char *values, unsigned width, uint64_t count,
                          uint64_t index, uint64_t *fingerprint, struct shuf__error *error)
{
    enum { PART = 1 << 24 };
    const struct shuf__simd_ops *simd;
    int team;
    if (shuf__simd_choose(NULL, &simd, error) || shuf__team(threads, &team, error))
        return error->status;
    *fingerprint = 0;
    for (uint64_t first = 0, part; first < count; first += part) {
        part = count - first < PART ? count - first : PART;
        *fingerprint +=
            shuf__host_fingerprint(simd, team, values + first * width, width, part, index + first);
        if (shuf__is_interrupted(0))
            return shuf__fail_cancelled(error);
    }
    return SHUF_OK;
}

shuf_status shuf_host_fingerprint(const void *values, unsigned width, uint64_t count,
                                  unsigned threads, uint64_t *fingerprint)
{
    struct shuf__error *error =
        SHUF__BEGIN_LOCAL({"values", count && !values}, SHUF__POINTER(fingerprint));
    if (error->status || check_width(width, error))
        return error->status;
    return add_up(threads, values, width, count, 0, fingerprint, error);
}

/* ---- Parts ---- */

static shuf_status check_part(const struct shuf__request_message *whole, uint64_t first,
                              uint64_t count, struct shuf__error *error)
{
    const uint64_t all = whole->shape.rows * whole->shape.count;
    if (whole->request.kind != SHUF__PERMUTATION && whole->request.kind != SHUF__STREAM)
        return shuf__fail(error, SHUF_INVALID,
                          "kind RANKS: a plan has no parts; expected PERMUTATION or NUMBERS");
    if (first <= all && count <= all - first)
        return SHUF_OK;
    return shuf__fail(error, SHUF_INVALID,
                      "first %" PRIu64 ", count %" PRIu64 ": the result has %" PRIu64 " value%s",
                      first, count, all, shuf__plural(all));
}

/* One computation has whole rows, or values of one row. */
static shuf_status compute_part(const struct shuf__request_message *whole, uint64_t first,
                                uint64_t count, unsigned threads, char *out,
                                struct shuf__error *error)
{
    for (uint64_t done = 0, values; done < count; done += values) {
        struct shuf__request part = whole->request;
        values = shuf__request_take(&part, first + done, count - done);
        if (compute(&part, NULL, true, threads, out + done * whole->shape.width, error))
            return error->status;
    }
    return SHUF_OK;
}

shuf_status shuf_host_part(const shuf_request *request, uint64_t first, uint64_t count,
                           unsigned threads, void *out, uint64_t *fingerprint)
{
    struct shuf__error *error = SHUF__BEGIN_LOCAL(SHUF__POINTER(request), {"out", count && !out});
    struct shuf__request_message whole;
    if (error->status || make_fill(request, SIZE_MAX, &whole, error) ||
        check_part(&whole, first, count, error))
        return error->status;
    const unsigned width = shuf__dtype_bytes(whole.request.dtype);
    if (check_alignment(out, width, error) ||
        compute_part(&whole, first, count, threads, out, error))
        return error->status;
    return fingerprint ? add_up(threads, out, width, count, first, fingerprint, error) : SHUF_OK;
}

/* ---- Device memory ---- */

shuf_status shuf_cuda_workspace(const shuf_request *request, size_t *bytes)
{
    struct shuf__error *error = SHUF__BEGIN_LOCAL(SHUF__POINTER(request), SHUF__POINTER(bytes));
    struct shuf__request_message m;
    if (error->status || make(request, SIZE_MAX, &m, error))
        return error->status;
    const struct shuf__cuda_library *cuda = shuf__cuda_library(error);
    return cuda ? cuda->scratch_bytes(&m.request, bytes, error) : error->status;
}

shuf_status shuf_cuda_fill(const shuf_request *request, void *out, size_t bytes, void *workspace,
                           size_t workspace_bytes, void *stream)
{
    struct shuf__error *error = SHUF__BEGIN_LOCAL(SHUF__POINTER(request), SHUF__POINTER(out));
    const struct shuf__scratch_memory scratch = {workspace, workspace_bytes};
    struct shuf__request_message m;
    if (error->status || refuse_summary(request, error) || make_fill(request, bytes, &m, error))
        return error->status;
    const struct shuf__cuda_library *cuda = shuf__cuda_library(error);
    return cuda ? cuda->compute(&m.request, NULL, out, &scratch, stream, error) : error->status;
}

shuf_status shuf_cuda_shuffle(const shuf_records *records, const void *in, void *out, size_t bytes,
                              void *workspace, size_t workspace_bytes, void *stream)
{
    struct shuf__error *error =
        SHUF__BEGIN_LOCAL(SHUF__POINTER(records), SHUF__POINTER(in), SHUF__POINTER(out));
    const struct shuf__scratch_memory scratch = {workspace, workspace_bytes};
    struct shuf__request_message m;
    if (error->status || make_shuffle(records, in, out, bytes, &m, error))
        return error->status;
    const struct shuf__cuda_library *cuda = shuf__cuda_library(error);
    return cuda ? cuda->compute(&m.request, in, out, &scratch, stream, error) : error->status;
}

static shuf_status check_look_up_type(const shuf_permutation *permutation, shuf_dtype dtype,
                                      struct shuf__error *error)
{
    if (dtype != SHUF_U32 && dtype != SHUF_U64)
        return shuf__fail(error, SHUF_INVALID, "dtype %d: expected U32 or U64", (int)dtype);
    if (dtype == SHUF_U32 && permutation->n > UINT64_C(1) << 32)
        return shuf__fail(error, SHUF_INVALID,
                          "n: %" PRIu64 " does not fit u32; expected dtype U64", permutation->n);
    return SHUF_OK;
}

shuf_status shuf_cuda_index(const shuf_permutation *permutation, shuf_direction direction,
                            shuf_dtype dtype, const void *at, size_t count, void *out, void *stream)
{
    struct shuf__error *error =
        SHUF__BEGIN_LOCAL(SHUF__POINTER(permutation), {"at", count && !at}, {"out", count && !out});
    struct shuf__request request;
    if (error->status || check_look_up_type(permutation, dtype, error) ||
        shuf__look_up_request(permutation, direction, &request, error) ||
        refuse_compaction(&request, error) || count == 0)
        return error->status;
    const unsigned width = dtype == SHUF_U32 ? 4 : 8;
    if (shuf__check_places(at, out, count, width, error))
        return error->status;
    const struct shuf__cuda_library *cuda = shuf__cuda_library(error);
    return cuda ? cuda->look_up(&request, width, at, out, count, stream, error) : error->status;
}

shuf_status shuf_cuda_fingerprint(const void *values, unsigned width, uint64_t count,
                                  uint64_t *fingerprint, void *stream)
{
    struct shuf__error *error =
        SHUF__BEGIN_LOCAL({"values", count && !values}, SHUF__POINTER(fingerprint));
    if (error->status || check_width(width, error))
        return error->status;
    const struct shuf__cuda_library *cuda = shuf__cuda_library(error);
    return cuda ? cuda->fingerprint(values, width, count, fingerprint, stream, error)
                : error->status;
}
