/* SPDX-License-Identifier: MIT
 *
 * Declares the tests on streams. Each is a row of the table in stream_tests.c, and is defined at
 * the end of its part of a file.
 */
#ifndef SHUF__STREAM_FAMILIES_H
#define SHUF__STREAM_FAMILIES_H

#include "stream.h"

/* The test `lattice` has steps 2^-k. These are the k of the widest and of the narrowest step for a
 * type. */
void shuf__stream_lattice_steps(shuf_dtype dtype, unsigned *least, unsigned *most);

extern const struct shuf__stream_test shuf__stream_moments, shuf__stream_bins,
    shuf__stream_anderson_darling, shuf__stream_tails, shuf__stream_lags, shuf__stream_pairs,
    shuf__stream_walsh, shuf__stream_squares, shuf__stream_streams, shuf__stream_low_bits,
    shuf__stream_repeats, shuf__stream_lattice, shuf__stream_cosines, shuf__stream_quads,
    shuf__stream_signs, shuf__stream_norms, shuf__stream_places, shuf__stream_round,
    shuf__stream_ties, shuf__stream_windows, shuf__stream_mixed, shuf__stream_quotients;

#endif
