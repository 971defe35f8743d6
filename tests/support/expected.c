/* SPDX-License-Identifier: MIT
 *
 * See expected.h. The code is slow and simple on purpose.
 */
#include "expected.h"

#include "random.h"
#include "shuf/lcg.h"
#include "shuf/philox24.h"
#include "shuf/primefold.h"

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

/* Computes a shard as torch's DistributedSampler does: it pads or cuts the list of indices, and
 * takes every world-th index. Returns the part [step:step + count] of these. */
static uint64_t select_shard(const shuf_permutation *request, const uint64_t *whole, uint64_t *out)
{
    uint64_t each = request->n / request->world, count = 0;
    if (!request->drop_last && request->n % request->world != 0)
        each++;
    uint64_t k = 0;
    for (uint64_t i = request->rank; i < each * request->world; i += request->world, k++)
        if (k >= request->step && (request->count == 0 || k < request->step + request->count))
            out[count++] = whole[i % request->n];
    return count;
}

static uint64_t select_slice(const shuf_permutation *request, const uint64_t *whole, uint64_t *out)
{
    for (uint64_t i = 0; i < request->count; i++)
        out[i] = whole[request->offset + i * request->stride];
    return request->count;
}

static uint64_t select_view(const shuf_permutation *request, const uint64_t *whole, uint64_t *out)
{
    if (request->view == SHUF_VIEW_SHARD)
        return select_shard(request, whole, out);
    if (request->view == SHUF_VIEW_SLICE)
        return select_slice(request, whole, out);
    memcpy(out, whole, request->n * sizeof *out);
    return request->n;
}

uint64_t *expected_values(const shuf_permutation *request, uint64_t *count)
{
    uint64_t rows = request->epochs ? request->epochs : 1, used = 0;
    uint64_t *values = allocate(rows * (request->n + 1));
    for (uint64_t row = 0; row < rows; row++) {
        uint64_t *whole =
            permutation_values(request->algorithm, request->n, request->seed, request->epoch + row);
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

void expected_random_view(shuf_permutation *request)
{
    request->view = (shuf_view)random_below(3);
    if (request->view == SHUF_VIEW_SLICE) {
        request->offset = random_below(request->n);
        request->stride = random_size(request->n);
        request->count = random_size((request->n - 1 - request->offset) / request->stride + 1);
    } else if (request->view == SHUF_VIEW_SHARD) {
        request->world = random_size(request->n * 2);
        request->rank = random_below(request->world);
        request->drop_last = random_below(2);
        const uint64_t length =
            request->n / request->world + (request->n % request->world != 0 && !request->drop_last);
        request->step = random_below(2) ? random_below(length + 1) : 0;
        request->count = random_below(2) ? random_below(length - request->step + 1) : 0;
    }
}
