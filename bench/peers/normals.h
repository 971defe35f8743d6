/* SPDX-License-Identifier: MIT
 *
 * Normal values in plain loops, as a user would write them: one thread, one value at a time, with
 * the functions of libm and words of SplitMix64, whose time is negligible.
 */
#ifndef SHUF__BENCH_NORMALS_H
#define SHUF__BENCH_NORMALS_H

#include <stdint.h>

void peer_box_muller_f64(double *out, uint64_t n, uint64_t seed);
void peer_box_muller_f32(float *out, uint64_t n, uint64_t seed);

/* Marsaglia's polar method: it needs no sine, but rejects about a fifth of the pairs. */
void peer_polar_f64(double *out, uint64_t n, uint64_t seed);

#endif
