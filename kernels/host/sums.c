/* SPDX-License-Identifier: MIT
 *
 * See sums.h. Threads sum parts of a fixed size. One thread then adds these sums in order. So the
 * number of threads does not change the result.
 */
#include "host/sums.h"

#include "dtype.h"
#include "shuf/half.h"

#include <string.h>

enum { PART = 1 << 14, BATCH = 256 }; /* values of a part; parts that are summed at a time */

static double value_at(const void *values, shuf_dtype dtype, size_t i)
{
    switch (dtype) {
    case SHUF_U32:
        return ((const uint32_t *)values)[i];
    case SHUF_U64:
        return (double)((const uint64_t *)values)[i];
    case SHUF_F64:
        return ((const double *)values)[i];
    case SHUF_F32:
        return ((const float *)values)[i];
    case SHUF_F16:
        return shuf_of_f16(((const uint16_t *)values)[i]);
    case SHUF_BF16:
        return shuf_of_bf16(((const uint16_t *)values)[i]);
    default:
        return 0; /* streams do not have this type */
    }
}

static struct shuf__sums sums_of(const void *values, shuf_dtype dtype, size_t count, double centre,
                                 double scale)
{
    const double x0 = value_at(values, dtype, 0);
    struct shuf__sums s = {.least = x0, .largest = x0};
    for (size_t i = 0; i < count; i++) {
        const double x = value_at(values, dtype, i), z = (x - centre) * scale, square = z * z;
        s.power[0] += z;
        s.power[1] += square;
        s.power[2] += square * z;
        s.power[3] += square * square;
        s.least = x < s.least ? x : s.least;
        s.largest = x > s.largest ? x : s.largest;
    }
    return s;
}

static struct shuf__sums sums_of_part(const void *values, shuf_dtype dtype, uint64_t count,
                                      uint64_t part, double centre, double scale)
{
    const uint64_t first = part * PART;
    const size_t size = count - first < PART ? count - first : PART;
    return sums_of((const char *)values + first * shuf__dtype_bytes((int)dtype), dtype, size,
                   centre, scale);
}

void shuf__host_sums(int threads, const void *values, shuf_dtype dtype, uint64_t count,
                     double centre, double scale, struct shuf__sums *sums)
{
    struct shuf__sums of[BATCH];
    const uint64_t parts = (count + PART - 1) / PART;
    for (uint64_t at = 0; at < parts; at += BATCH) {
        const int batch = parts - at < BATCH ? (int)(parts - at) : BATCH;
#pragma omp parallel for num_threads(threads) if (batch > 1)
        for (int i = 0; i < batch; i++)
            of[i] = sums_of_part(values, dtype, count, at + (uint64_t)i, centre, scale);
        if (at == 0)
            *sums = of[0];
        for (int i = at == 0; i < batch; i++)
            shuf__sums_add(sums, &of[i]);
    }
}
