/* SPDX-License-Identifier: MIT
 *
 * The table of the tests on streams.
 */
#include "stream.h"

const struct shuf__stream_test *const shuf__stream_tests[] = {
    &shuf__stream_moments,
    &shuf__stream_bins,
    &shuf__stream_anderson_darling,
    &shuf__stream_tails,
    &shuf__stream_lags,
    &shuf__stream_pairs,
    &shuf__stream_walsh,
    &shuf__stream_squares,
    &shuf__stream_streams,
    &shuf__stream_low_bits,
    &shuf__stream_repeats,
    &shuf__stream_lattice,
    &shuf__stream_cosines,
    &shuf__stream_quads,
    &shuf__stream_signs,
    &shuf__stream_norms,
    &shuf__stream_places,
    &shuf__stream_round,
    &shuf__stream_ties,
    &shuf__stream_windows,
    &shuf__stream_mixed,
    &shuf__stream_quotients,
    NULL,
};

bool shuf__stream_applies(const struct shuf__stream_test *test, const struct shuf__stream_law *law,
                          bool relatives)
{
    const unsigned of = law->uniform ? SHUF__OF_UNIFORM : SHUF__OF_NORMAL;
    return test->of & of && (relatives || !test->relatives) &&
           !(law->rounded && test->of & SHUF__OF_FINE);
}
