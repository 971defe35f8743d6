/* SPDX-License-Identifier: MIT
 *
 * See draws.h.
 */
#include "draws.h"

#include "shuf/bernoulli.h"
#include "shuf/box_muller.h"
#include "shuf/exponential.h"
#include "shuf/gauss.h"
#include "shuf/integers.h"
#include "shuf/uniform.h"

#include <string.h>

static uint64_t bits_of_double(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static uint64_t gauss_bits(const struct draw *draw)
{
    const shuf_gauss g = shuf_gauss_make(draw->seed, draw->stream, draw->mean, draw->std);
    switch (draw->dtype) {
    case SHUF_F64:
        return bits_of_double(shuf_gauss_f64(&g, draw->index));
    case SHUF_F32:
        return shuf__float_bits(shuf_gauss_f32(&g, draw->index));
    case SHUF_F16:
        return shuf_gauss_f16(&g, draw->index);
    default:
        return shuf_gauss_bf16(&g, draw->index);
    }
}

static uint64_t box_muller_bits(const struct draw *draw)
{
    const shuf_box_muller b = shuf_box_muller_make(draw->seed, draw->stream, draw->mean, draw->std);
    switch (draw->dtype) {
    case SHUF_F64:
        return bits_of_double(shuf_box_muller_f64(&b, draw->index));
    case SHUF_F32:
        return shuf__float_bits(shuf_box_muller_f32(&b, draw->index));
    case SHUF_F16:
        return shuf_box_muller_f16(&b, draw->index);
    default:
        return shuf_box_muller_bf16(&b, draw->index);
    }
}

static uint64_t uniform_bits(const struct draw *draw)
{
    const shuf_stream s = shuf_uniform_make(draw->seed, draw->stream);
    switch (draw->dtype) {
    case SHUF_U32:
        return shuf_uniform_u32(&s, draw->index);
    case SHUF_U64:
        return shuf_uniform_u64(&s, draw->index);
    case SHUF_F32:
        return shuf__float_bits(shuf_uniform_f32(&s, draw->index));
    default:
        return bits_of_double(shuf_uniform_f64(&s, draw->index));
    }
}

static uint64_t exponential_bits(const struct draw *draw)
{
    const shuf_exponential e = shuf_exponential_make(draw->seed, draw->stream, draw->mean);
    return draw->dtype == SHUF_F64 ? bits_of_double(shuf_exponential_f64(&e, draw->index))
                                   : shuf__float_bits(shuf_exponential_f32(&e, draw->index));
}

static uint64_t bernoulli_bits(const struct draw *draw)
{
    const shuf_bernoulli b = shuf_bernoulli_make(draw->seed, draw->stream, draw->mean);
    return draw->dtype == SHUF_U64 ? shuf_bernoulli_u64(&b, draw->index)
                                   : shuf_bernoulli_u32(&b, draw->index);
}

static uint64_t integers_bits(const struct draw *draw)
{
    const shuf_integers s = shuf_integers_make(draw->seed, draw->stream, draw->bound);
    return draw->dtype == SHUF_U64 ? shuf_integers_u64(&s, draw->index)
                                   : shuf_integers_u32(&s, draw->index);
}

uint64_t draw_bits(const struct draw *draw)
{
    switch (draw->distribution) {
    case SHUF_DISTRIBUTION_GAUSS:
        return gauss_bits(draw);
    case SHUF_DISTRIBUTION_BOX_MULLER:
        return box_muller_bits(draw);
    case SHUF_DISTRIBUTION_EXPONENTIAL:
        return exponential_bits(draw);
    case SHUF_DISTRIBUTION_BERNOULLI:
        return bernoulli_bits(draw);
    case SHUF_DISTRIBUTION_INTEGERS:
        return integers_bits(draw);
    default:
        return uniform_bits(draw);
    }
}

void draw_parameters(unsigned distribution, double mean, double *of_mean, double *of_std,
                     uint64_t *bound)
{
    const enum shuf__parameters parameters = shuf__distribution_parameters(distribution);
    *of_mean = !shuf__distribution_has_mean(distribution) ? 0
               : parameters == SHUF__PROBABILITY          ? 0.3
                                                          : mean;
    *of_std = parameters == SHUF__MEAN_AND_STD;
    *bound = parameters == SHUF__BOUND ? UINT64_C(3) << 30 : 0;
}

double draw_value(shuf_dtype dtype, uint64_t bits)
{
    const uint32_t low = (uint32_t)bits;
    double wide;
    float narrow;
    memcpy(&wide, &bits, sizeof wide);
    memcpy(&narrow, &low, sizeof narrow);
    switch (dtype) {
    case SHUF_F64:
        return wide;
    case SHUF_F32:
        return narrow;
    case SHUF_F16:
        return shuf_of_f16((uint16_t)bits);
    case SHUF_BF16:
        return shuf_of_bf16((uint16_t)bits);
    default:
        return (double)bits;
    }
}

unsigned draw_width(shuf_dtype dtype)
{
    return shuf__dtype_bytes((int)dtype);
}

enum shuf__distribution draw_distribution(const char *name)
{
    static const char *const names[] = {"",
#define X(name, number, text, parameters, types) [number] = text,
                                        SHUF_DISTRIBUTION_MAP(X)
#undef X
    };
    for (int i = 1; i < SHUF_DISTRIBUTION_COUNT; i++)
        if (strcmp(name, names[i]) == 0)
            return (enum shuf__distribution)i;
    return SHUF_DISTRIBUTION_NONE;
}

shuf_dtype draw_dtype(const char *name)
{
    int i = 1;
    while (i < SHUF__DTYPES && strcmp(name, shuf__dtype_name(i)) != 0)
        i++;
    return (shuf_dtype)i;
}
