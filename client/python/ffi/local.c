/* SPDX-License-Identifier: MIT
 *
 * Results in this process, see shim.h. Calls that compute on the CPU run the signal handlers of
 * Python. Those of a GPU return before the work is done.
 */
#include "call.h"
#include "shim.h"

#include <stdlib.h>

/* ---- Host memory ------------------------------------------------------------------- */

static int end(shuf_status status)
{
    return status == SHUF_OK ? SHUF_OK : shufpy__fail((int)status, shuf_message(NULL));
}

static int end_interruptible(shuf_status status)
{
    shufpy__end_interruptible();
    return end(status);
}

#define HOST_CALL(function, ...) \
    (shufpy__begin_interruptible(), end_interruptible(function(__VA_ARGS__)))

int shufpy_host_fill(const shuf_request *request, unsigned threads, uintptr_t out, size_t bytes)
{
    return HOST_CALL(shuf_host_fill, request, threads, (void *)out, bytes);
}

int shufpy_host_shuffle(const shuf_records *records, unsigned threads, uintptr_t in, uintptr_t out,
                        size_t bytes)
{
    return HOST_CALL(shuf_host_shuffle, records, threads, (const void *)in, (void *)out, bytes);
}

int shufpy_host_fingerprint(uintptr_t values, unsigned width, uint64_t count, unsigned threads,
                            uint64_t *fingerprint)
{
    return HOST_CALL(shuf_host_fingerprint, (const void *)values, width, count, threads,
                     fingerprint);
}

/* ---- Device memory ----------------------------------------------------------------- */

int shufpy_cuda_workspace(const shuf_request *request, size_t *bytes)
{
    return end(shuf_cuda_workspace(request, bytes));
}

int shufpy_cuda_fill(const shuf_request *request, uintptr_t out, size_t bytes, uintptr_t workspace,
                     size_t workspace_bytes, uintptr_t stream)
{
    return end(shuf_cuda_fill(request, (void *)out, bytes, (void *)workspace, workspace_bytes,
                              (void *)stream));
}

int shufpy_cuda_shuffle(const shuf_records *records, uintptr_t in, uintptr_t out, size_t bytes,
                        uintptr_t workspace, size_t workspace_bytes, uintptr_t stream)
{
    return end(shuf_cuda_shuffle(records, (const void *)in, (void *)out, bytes, (void *)workspace,
                                 workspace_bytes, (void *)stream));
}

int shufpy_cuda_fingerprint(uintptr_t values, unsigned width, uint64_t count, uintptr_t fingerprint,
                            uintptr_t stream)
{
    return end(shuf_cuda_fingerprint((const void *)values, width, count, (uint64_t *)fingerprint,
                                     (void *)stream));
}

/* ---- Without a request --------------------------------------------------------------- */

static shuf_request slice(uint64_t n, uint64_t seed, uint64_t epoch, uint64_t offset,
                          uint64_t count, uint64_t stride, int dtype)
{
    const shuf_permutation whole = {
        .n = n, .seed = seed, .epoch = epoch, .dtype = (shuf_dtype)dtype};
    shuf_request request = {.permutation = whole};
    if (offset == 0 && count == n && stride == 1)
        return request;
    request.permutation.view = SHUF_VIEW_SLICE;
    request.permutation.offset = offset;
    request.permutation.count = count;
    request.permutation.stride = stride;
    return request;
}

int shufpy_host_slice(uint64_t n, uint64_t seed, uint64_t epoch, uint64_t chunk, uint64_t window,
                      uint64_t offset, uint64_t count, uint64_t stride, int dtype, unsigned threads,
                      uintptr_t out, size_t bytes)
{
    shuf_request request = slice(n, seed, epoch, offset, count, stride, dtype);
    request.permutation.chunk = chunk;
    request.permutation.window = window;
    return shufpy_host_fill(&request, threads, out, bytes);
}

int shufpy_cuda_slice(uint64_t n, uint64_t seed, uint64_t epoch, uint64_t offset, uint64_t count,
                      uint64_t stride, int dtype, uintptr_t stream, uintptr_t out, size_t bytes)
{
    const shuf_request request = slice(n, seed, epoch, offset, count, stride, dtype);
    return shufpy_cuda_fill(&request, out, bytes, 0, 0, stream);
}

int shufpy_host_index(uint64_t n, uint64_t seed, uint64_t epoch, uint64_t chunk, uint64_t window,
                      bool inverse, unsigned threads, uintptr_t at, size_t count, uintptr_t out)
{
    const shuf_permutation permutation = {
        .n = n, .seed = seed, .epoch = epoch, .chunk = chunk, .window = window};
    return HOST_CALL(shuf_host_index, &permutation, inverse ? SHUF_INVERSE : SHUF_FORWARD, threads,
                     (const uint64_t *)at, count, (uint64_t *)out);
}

int shufpy_cuda_index(uint64_t n, uint64_t seed, uint64_t epoch, bool inverse, int dtype,
                      uintptr_t stream, uintptr_t at, size_t count, uintptr_t out)
{
    const shuf_permutation permutation = {.n = n, .seed = seed, .epoch = epoch};
    return end(shuf_cuda_index(&permutation, inverse ? SHUF_INVERSE : SHUF_FORWARD,
                               (shuf_dtype)dtype, (const void *)at, count, (void *)out,
                               (void *)stream));
}

static shuf_request numbers(int distribution, uint64_t seed, uint64_t stream, uint64_t offset,
                            uint64_t count, double mean, double std, uint64_t bound, int dtype,
                            int method)
{
    return (shuf_request){SHUF_NUMBERS, .numbers = {.distribution = (shuf_distribution)distribution,
                                                    .seed = seed,
                                                    .stream = stream,
                                                    .offset = offset,
                                                    .count = count,
                                                    .mean = mean,
                                                    .std = std,
                                                    .bound = bound,
                                                    .dtype = (shuf_dtype)dtype,
                                                    .method = (shuf_method)method}};
}

int shufpy_host_numbers(int distribution, uint64_t seed, uint64_t stream, uint64_t offset,
                        uint64_t count, double mean, double std, uint64_t bound, int dtype,
                        int method, unsigned threads, uintptr_t out, size_t bytes)
{
    const shuf_request request =
        numbers(distribution, seed, stream, offset, count, mean, std, bound, dtype, method);
    return shufpy_host_fill(&request, threads, out, bytes);
}

int shufpy_cuda_numbers(int distribution, uint64_t seed, uint64_t stream, uint64_t offset,
                        uint64_t count, double mean, double std, uint64_t bound, int dtype,
                        int method, uintptr_t cuda_stream, uintptr_t out, size_t bytes)
{
    const shuf_request request =
        numbers(distribution, seed, stream, offset, count, mean, std, bound, dtype, method);
    return shufpy_cuda_fill(&request, out, bytes, 0, 0, cuda_stream);
}

/* ---- Mixtures ------------------------------------------------------------------------ */

int shufpy_mixture_make(uint64_t seed, uint64_t block, size_t sources, const uint64_t *records,
                        const uint64_t *epochs, const uint64_t *chunks, const uint64_t *windows,
                        size_t stages, const uint64_t *firsts, const uint64_t *weights,
                        shuf_mixture **mixture)
{
    shuf_source *source = calloc(sources, sizeof *source);
    shuf_stage *stage = calloc(stages, sizeof *stage);
    shuf_status status = SHUF_NO_MEMORY;
    for (size_t i = 0; source && i < sources; i++)
        source[i] = (shuf_source){records[i], epochs[i], chunks[i], windows[i]};
    for (size_t s = 0; stage && s < stages; s++)
        stage[s] = (shuf_stage){firsts[s], weights + s * sources};
    const shuf_mixture_request request = {seed, block, source, sources, stage, stages};
    if (source && stage)
        status = shuf_mixture_make(&request, mixture);
    free(source);
    free(stage);
    return source && stage ? end(status) : shufpy__fail(SHUF_NO_MEMORY, "mixture: no memory");
}

int shufpy_mixture_fill(shuf_mixture *mixture, uint64_t first, size_t count, uint64_t stride,
                        unsigned threads, uintptr_t index, uintptr_t source, uintptr_t epoch,
                        uintptr_t record)
{
    const shuf_mixed out = {(uint64_t *)index, (uint32_t *)source, (uint64_t *)epoch,
                            (uint64_t *)record};
    return HOST_CALL(shuf_mixture_fill, mixture, first, count, stride, threads, &out);
}

int shufpy_mixture_positions(const shuf_mixture *mixture, size_t count, uintptr_t source,
                             uintptr_t epoch, uintptr_t record, uintptr_t positions)
{
    const shuf_mixed in = {NULL, (uint32_t *)source, (uint64_t *)epoch, (uint64_t *)record};
    return HOST_CALL(shuf_mixture_positions, mixture, count, &in, (uint64_t *)positions);
}

int shufpy_mixture_counts(const shuf_mixture *mixture, uint64_t position, uintptr_t counts)
{
    return end(shuf_mixture_counts(mixture, position, (uint64_t *)counts));
}

int shufpy_mixture_exhausted(const shuf_mixture *mixture, uintptr_t positions)
{
    return end(shuf_mixture_exhausted(mixture, (uint64_t *)positions));
}

/* ---- Unequal chunks ------------------------------------------------------------------ */

int shufpy_chunks_make(uint64_t seed, uint64_t epoch, uintptr_t sizes, size_t count,
                       uint64_t window, shuf_chunks **chunks)
{
    const shuf_chunks_request request = {seed, epoch, (const uint64_t *)sizes, count, window};
    return HOST_CALL(shuf_chunks_make, &request, chunks);
}

int shufpy_chunks_fill(const shuf_chunks *chunks, uint64_t first, size_t count, uint64_t stride,
                       unsigned threads, int dtype, uintptr_t out)
{
    return HOST_CALL(shuf_chunks_fill, chunks, first, count, stride, threads, (shuf_dtype)dtype,
                     (void *)out);
}

int shufpy_chunks_index(const shuf_chunks *chunks, bool inverse, unsigned threads, uintptr_t at,
                        size_t count, uintptr_t out)
{
    return HOST_CALL(shuf_chunks_index, chunks, inverse ? SHUF_INVERSE : SHUF_FORWARD, threads,
                     (const uint64_t *)at, count, (uint64_t *)out);
}

int shufpy_chunks_needed(const shuf_chunks *chunks, uint64_t first, size_t count, uint64_t stride,
                         uintptr_t numbers, size_t *found)
{
    return HOST_CALL(shuf_chunks_needed, chunks, first, count, stride, (uint64_t *)numbers, found);
}

/* ---- Weighted draws ------------------------------------------------------------------ */

int shufpy_weights_make(uintptr_t values, int dtype, uint64_t count, shuf_weights **weights)
{
    return HOST_CALL(shuf_weights_make, (const void *)values, (shuf_dtype)dtype, count, weights);
}

int shufpy_weights_draw(const shuf_weights *weights, uint64_t seed, uint64_t epoch, uint64_t first,
                        size_t count, uint64_t stride, unsigned threads, uintptr_t out)
{
    return HOST_CALL(shuf_weights_draw, weights, seed, epoch, first, count, stride, threads,
                     (uint64_t *)out);
}

int shufpy_weights_sample(uintptr_t values, int dtype, uint64_t count, uint64_t seed,
                          uint64_t epoch, size_t sample, uintptr_t out)
{
    return HOST_CALL(shuf_weights_sample, (const void *)values, (shuf_dtype)dtype, count, seed,
                     epoch, sample, (uint64_t *)out);
}

int shufpy_cuda_weights_workspace(uint64_t count, size_t *bytes)
{
    return end(shuf_cuda_weights_workspace(count, bytes));
}

int shufpy_cuda_weights_make(uintptr_t values, int dtype, uint64_t count, uintptr_t table,
                             size_t table_bytes, uintptr_t workspace, size_t workspace_bytes,
                             uintptr_t stream)
{
    return end(shuf_cuda_weights_make((const void *)values, (shuf_dtype)dtype, count,
                                      (uint64_t *)table, table_bytes, (void *)workspace,
                                      workspace_bytes, (void *)stream));
}

int shufpy_cuda_weights_draw(uintptr_t table, uint64_t weights, uint64_t seed, uint64_t epoch,
                             uint64_t first, size_t count, uint64_t stride, uintptr_t out,
                             uintptr_t stream)
{
    return end(shuf_cuda_weights_draw((const uint64_t *)table, weights, seed, epoch, first, count,
                                      stride, (uint64_t *)out, (void *)stream));
}

int shufpy_cuda_weights_sample_workspace(uint64_t count, size_t *bytes)
{
    return end(shuf_cuda_weights_sample_workspace(count, bytes));
}

int shufpy_cuda_weights_sample(uintptr_t values, int dtype, uint64_t count, uint64_t seed,
                               uint64_t epoch, size_t sample, uintptr_t out, uintptr_t workspace,
                               size_t workspace_bytes, uintptr_t stream)
{
    return end(shuf_cuda_weights_sample((const void *)values, (shuf_dtype)dtype, count, seed, epoch,
                                        sample, (uint64_t *)out, (void *)workspace, workspace_bytes,
                                        (void *)stream));
}
