/* SPDX-License-Identifier: MIT
 *
 * See normals.h.
 */
#include "normals.h"

#include <math.h>

static uint64_t splitmix64(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

/* A number in (0, 1], so its logarithm is finite. */
static double unit_f64(uint64_t *state)
{
    return (double)((splitmix64(state) >> 11) + 1) * 0x1p-53;
}

void peer_box_muller_f64(double *out, uint64_t n, uint64_t seed)
{
    uint64_t state = seed;
    for (uint64_t i = 0; i < n; i += 2) {
        const double radius = sqrt(-2 * log(unit_f64(&state)));
        const double angle = 2 * M_PI * unit_f64(&state);
        out[i] = radius * cos(angle);
        if (i + 1 < n)
            out[i + 1] = radius * sin(angle);
    }
}

void peer_box_muller_f32(float *out, uint64_t n, uint64_t seed)
{
    uint64_t state = seed;
    for (uint64_t i = 0; i < n; i += 2) {
        const uint64_t word = splitmix64(&state);
        const float u = (float)((word >> 40) + 1) * 0x1p-24f;
        const float radius = sqrtf(-2 * logf(u));
        const float angle = (float)(2 * M_PI) * ((float)(word & 0xffffff) * 0x1p-24f);
        out[i] = radius * cosf(angle);
        if (i + 1 < n)
            out[i + 1] = radius * sinf(angle);
    }
}

void peer_polar_f64(double *out, uint64_t n, uint64_t seed)
{
    uint64_t state = seed;
    for (uint64_t i = 0; i < n; i += 2) {
        double x, y, square;
        do {
            x = 2 * unit_f64(&state) - 1;
            y = 2 * unit_f64(&state) - 1;
            square = x * x + y * y;
        } while (square >= 1 || square == 0);
        const double factor = sqrt(-2 * log(square) / square);
        out[i] = x * factor;
        if (i + 1 < n)
            out[i + 1] = y * factor;
    }
}
