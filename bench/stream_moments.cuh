/* SPDX-License-Identifier: MIT
 *
 * Moments 1 to 8 of Gaussian streams, over more values than fit into memory.
 */
#ifndef SHUF__BENCH_STREAM_MOMENTS_CUH
#define SHUF__BENCH_STREAM_MOMENTS_CUH

#include "report.h"

#include <cstdint>

namespace bench
{

/* Rows of each type, over `count` values, rounded up to a whole launch. */
void moment_rows(report *out, uint64_t count);

} // namespace bench

#endif
