/* SPDX-License-Identifier: MIT
 *
 * Normal values as one would write them without a library of streams: one thread, one
 * value after the other, with libm's functions and words of SplitMix64, which cost next
 * to nothing.
 */
#ifndef SHUF__BENCH_NORMALS_H
#define SHUF__BENCH_NORMALS_H

#include <stdint.h>

void peer_box_muller_f64(double *out, uint64_t n, uint64_t seed);
void peer_box_muller_f32(float *out, uint64_t n, uint64_t seed);

/* Marsaglia's: no sine, but about a fifth of the pairs is drawn again. */
void peer_polar_f64(double *out, uint64_t n, uint64_t seed);

#endif
