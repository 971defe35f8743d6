/* SPDX-License-Identifier: MIT
 *
 * See expected.h. The code is slow and simple on purpose.
 */
#include "expected.h"

#include "random.h"
#include "shuf/lcg.h"
#include "shuf/philox24.h"
#include "shuf/primefold.h"
#include "shuf/windowed.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *allocate(uint64_t values)
{
    void *memory = malloc((values ? values : 1) * sizeof(uint64_t));
    if (!memory)
        abort();
    return memory;
}

static uint64_t *primefold_values(uint64_t n, uint64_t seed, uint64_t epoch)
{
    uint64_t *values = allocate(n);
    shuf_primefold f = shuf_primefold_make(n, seed, epoch);
    for (uint64_t i = 0; i < n; i++)
        values[i] = shuf_primefold_forward(&f, i);
    return values;
}

static uint64_t *permutation_values(const char *algorithm, uint64_t n, uint64_t seed,
                                    uint64_t epoch)
{
    if (!algorithm || strcmp(algorithm, "primefold") == 0)
        return primefold_values(n, seed, epoch);
    bool lcg = strcmp(algorithm, "lcg") == 0;
    if (!lcg && strcmp(algorithm, "philox24") != 0)
        abort();
    uint64_t *values = allocate(n), kept = 0;
    shuf_philox24 philox = shuf_philox24_make(n, seed, epoch);
    shuf_lcg congruence = shuf_lcg_make(n, seed, epoch);
    for (uint64_t x = 0; x < UINT64_C(1) << shuf_domain_bits(n); x++) {
        uint64_t y = lcg ? shuf_lcg_forward(&congruence, x) : shuf_philox24_forward(&philox, x);
        if (y < n)
            values[kept++] = y;
    }
    return values;
}

/* Lists the records of each window, and takes them in the order of its permutation. */
static uint64_t *windowed_values(const shuf_windows *sizes, uint64_t seed, uint64_t epoch)
{
    uint64_t *values = allocate(sizes->n), *records = allocate(sizes->n), used = 0;
    const shuf_windowed w = shuf_windowed_make(sizes, shuf_key_of_seed(seed), epoch);
    for (uint64_t j = 0; j < sizes->windows; j++) {
        uint64_t count = 0;
        for (uint64_t k = j * sizes->window; k < (j + 1) * sizes->window && k < sizes->chunks;
             k++) {
            const uint64_t first = shuf_primefold_forward(&w.chunk_order, k) * sizes->chunk;
            for (uint64_t r = first; r < first + sizes->chunk && r < sizes->n; r++)
                records[count++] = r;
        }
        const shuf_primefold order = shuf_primefold_make_keyed(count, w.key, j);
        for (uint64_t i = 0; i < count; i++)
            values[used++] = records[shuf_primefold_forward(&order, i)];
    }
    free(records);
    return values;
}

static uint64_t *order_values(const shuf_permutation *p, uint64_t epoch)
{
    if (p->window == 0)
        return permutation_values(p->algorithm, p->n, p->seed, epoch);
    const shuf_windows sizes = shuf_windows_of(p->n, p->chunk, p->window);
    return sizes.windows < 2 ? primefold_values(p->n, p->seed, epoch)
                             : windowed_values(&sizes, p->seed, epoch);
}

/* Computes a shard as torch's DistributedSampler does: it pads or cuts the list of indices, and
 * takes every world-th index. Returns the part [step:step + count] of these. */
static uint64_t select_shard(const shuf_request *request, const uint64_t *whole, uint64_t *out)
{
    uint64_t each = request->permutation.n / request->permutation.world, count = 0;
    if (!request->permutation.drop_last && request->permutation.n % request->permutation.world != 0)
        each++;
    uint64_t k = 0;
    for (uint64_t i = request->permutation.rank; i < each * request->permutation.world;
         i += request->permutation.world, k++)
        if (k >= request->permutation.step &&
            (request->permutation.count == 0 ||
             k < request->permutation.step + request->permutation.count))
            out[count++] = whole[i % request->permutation.n];
    return count;
}

static uint64_t select_slice(const shuf_request *request, const uint64_t *whole, uint64_t *out)
{
    for (uint64_t i = 0; i < request->permutation.count; i++)
        out[i] = whole[request->permutation.offset + i * request->permutation.stride];
    return request->permutation.count;
}

static uint64_t select_view(const shuf_request *request, const uint64_t *whole, uint64_t *out)
{
    if (request->permutation.view == SHUF_VIEW_SHARD)
        return select_shard(request, whole, out);
    if (request->permutation.view == SHUF_VIEW_SLICE)
        return select_slice(request, whole, out);
    memcpy(out, whole, request->permutation.n * sizeof *out);
    return request->permutation.n;
}

uint64_t *expected_values(const shuf_request *request, uint64_t *count)
{
    uint64_t rows = request->permutation.epochs ? request->permutation.epochs : 1, used = 0;
    uint64_t *values = allocate(rows * (request->permutation.n + 1));
    for (uint64_t row = 0; row < rows; row++) {
        uint64_t *whole = order_values(&request->permutation, request->permutation.epoch + row);
        used += select_view(request, whole, values + used);
        free(whole);
    }
    if (count)
        *count = used;
    return values;
}

uint64_t expected_read(const void *result, unsigned width, uint64_t index)
{
    return width == 4 ? ((const uint32_t *)result)[index] : ((const uint64_t *)result)[index];
}

bool expected_equal(const uint64_t *values, const void *result, unsigned width, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        uint64_t value = expected_read(result, width, i);
        if (value == values[i])
            continue;
        fprintf(stderr, "value %" PRIu64 " is %" PRIu64 ", expected %" PRIu64 "\n", i, value,
                values[i]);
        return false;
    }
    return true;
}

void expected_random_view(shuf_request *request)
{
    request->permutation.view = (shuf_view)random_below(3);
    if (request->permutation.view == SHUF_VIEW_SLICE) {
        request->permutation.offset = random_below(request->permutation.n);
        request->permutation.stride = random_size(request->permutation.n);
        request->permutation.count =
            random_size((request->permutation.n - 1 - request->permutation.offset) /
                            request->permutation.stride +
                        1);
    } else if (request->permutation.view == SHUF_VIEW_SHARD) {
        request->permutation.world = random_size(request->permutation.n * 2);
        request->permutation.rank = random_below(request->permutation.world);
        request->permutation.drop_last = random_below(2);
        const uint64_t length = request->permutation.n / request->permutation.world +
                                (request->permutation.n % request->permutation.world != 0 &&
                                 !request->permutation.drop_last);
        request->permutation.step = random_below(2) ? random_below(length + 1) : 0;
        request->permutation.count =
            random_below(2) ? random_below(length - request->permutation.step + 1) : 0;
    }
}
