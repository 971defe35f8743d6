/* SPDX-License-Identifier: MIT
 *
 * See moments_from_sums.h. The reply has sums of powers of z = (x - centre) * scale. The centre is
 * near the mean of x, so the mean of z is about 0. So b - a * a, the variance of z, loses little
 * precision.
 */
#include "moments_from_sums.h"

#include <math.h>

shuf_moments shuf__moments_from_sums(const Shuf__Sums *sums, uint64_t count)
{
    const double n = (double)count;
    const double a = sums->z1 / n, b = sums->z2 / n, c = sums->z3 / n, d = sums->z4 / n;
    /* Rounding would give equal values a variance, and may make that of others negative. */
    const bool equal = sums->least == sums->largest;
    const double m2 = equal ? 0 : fmax(b - a * a, 0);
    const double m3 = c - 3 * a * b + 2 * a * a * a;
    const double m4 = d - 4 * a * c + 6 * a * a * b - 3 * a * a * a * a;
    return (shuf_moments){
        .mean = equal ? sums->least : sums->centre + a / sums->scale,
        .variance = m2 / sums->scale / sums->scale,
        .skewness = m2 > 0 ? m3 / (m2 * sqrt(m2)) : (double)NAN,
        .kurtosis = m2 > 0 ? m4 / (m2 * m2) : (double)NAN,
        .least = sums->least,
        .largest = sums->largest,
    };
}
