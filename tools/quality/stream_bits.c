/* SPDX-License-Identifier: MIT
 *
 * Writes values as bits for other programs. A value becomes the probability of smaller values, in
 * units of 2^-32.
 */
#include "stream_report.h"

void shuf__stream_bits(const struct shuf__stream_origin *origin, const struct shuf__stream_law *law,
                       uint64_t samples)
{
    static double value[SHUF__CHUNK];
    static uint32_t word[SHUF__CHUNK];
    for (uint64_t done = 0; done < samples; done += SHUF__CHUNK) {
        const size_t count = samples - done < SHUF__CHUNK ? (size_t)(samples - done) : SHUF__CHUNK;
        origin->generator->fill(origin->seed, origin->stream, origin->dtype, done, SHUF__CHUNK,
                                value);
        for (size_t i = 0; i < count; i++) {
            const double below = law->uniform ? value[i] : shuf__law_below(law, value[i]);
            const double scaled = below * 4294967296.0;
            word[i] = scaled < 4294967295.0 ? (uint32_t)scaled : UINT32_MAX;
        }
        if (fwrite(word, sizeof *word, count, stdout) != count)
            return; /* main() reports the failure */
    }
}
