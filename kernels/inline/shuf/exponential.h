/* SPDX-License-Identifier: MIT
 *
 * Exponential streams: -mean ln u, for a uniform u that is precise near 0 and near 1. The logarithm
 * is that of the radius of Box and Muller's method (box_muller.h). docs/spec.md, "Exponential
 * streams".
 *
 *     shuf_exponential e = shuf_exponential_make(seed, stream, 1);
 *     double x = shuf_exponential_f64(&e, i);
 */
#ifndef SHUF_EXPONENTIAL_H
#define SHUF_EXPONENTIAL_H

#include "box_muller.h"
#include "stream.h"

typedef struct shuf_exponential {
    shuf_stream words;
    double half; /* of the mean, because the logarithm is multiplied by 2 */
} shuf_exponential;

/* mean: 2^-100 to 2^100. */
SHUF_FUNCTION shuf_exponential shuf_exponential_make_keyed(shuf_key key, uint64_t stream,
                                                           double mean)
{
    shuf_exponential e;
    e.words = shuf_stream_make(key, stream, SHUF_STREAM_EXPONENTIAL);
    e.half = mean / 2;
    return e;
}

SHUF_FUNCTION shuf_exponential shuf_exponential_make(uint64_t seed, uint64_t stream, double mean)
{
    return shuf_exponential_make_keyed(shuf_key_of_seed(seed), stream, mean);
}

/* Value 0 or 1 of a draw. */
SHUF_FUNCTION double shuf_exponential_f64_of(const shuf_box_muller_terms *terms, double half,
                                             const shuf_stream_draw *d, int i)
{
    const shuf_box_muller_wide words = shuf_box_muller_wide_of(d);
    return shuf_box_muller_log_f64(terms, i ? words.angle : words.radius) * half;
}

/* Value 0 to 3 of a draw. The logarithm of a double, rounded once, reaches each float with its
 * probability: a logarithm of a float of 24 bits would leave out some of them. */
SHUF_FUNCTION float shuf_exponential_f32_of(const shuf_box_muller_terms *terms, double half,
                                            const shuf_stream_draw *d, int i)
{
    const uint64_t words[2] = {(uint64_t)d->word[i] << 32 | d->early[i], 0};
    return (float)(shuf_box_muller_log_f64(terms, words) * half);
}

/* Value i of the stream, i < SHUF_STREAM_MAX. */
SHUF_FUNCTION double shuf_exponential_f64(const shuf_exponential *e, uint64_t i)
{
    const shuf_stream_draw draw = shuf_stream_draw_make(&e->words, i / 2);
    const shuf_box_muller_terms terms = shuf_box_muller_terms_make();
    return shuf_exponential_f64_of(&terms, e->half, &draw, (int)(i % 2));
}

SHUF_FUNCTION float shuf_exponential_f32(const shuf_exponential *e, uint64_t i)
{
    const shuf_stream_draw draw = shuf_stream_draw_make(&e->words, i / 4);
    const shuf_box_muller_terms terms = shuf_box_muller_terms_make();
    return shuf_exponential_f32_of(&terms, e->half, &draw, (int)(i % 4));
}

#endif
