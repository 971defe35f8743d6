/* SPDX-License-Identifier: MIT
 *
 * See stream_moments.cuh. For each moment the report has the expected value for independent normal
 * numbers of that type, its standard error, and the difference in standard errors. Values of a
 * block are made from the same table numbers. So the report also compares the spread of the parts'
 * means with the spread for independent values.
 */
#include "stream_moments.cuh"

#include "device.cuh"
#include "moments.h"
#include "stream_kernels.cuh"
#include "timed.h"

#include <cmath>
#include <vector>

namespace bench
{

namespace
{

constexpr uint64_t launch_parts = 1 << 14;
constexpr uint64_t launch_values = launch_parts * part_values;

/* Sums for one power: over all values, and over the differences of the parts' means from the
 * expected moment. */
struct Sums {
    exact_sum whole, distance, square;
};

void add_parts(const std::vector<Part> &parts, const double *expected, Sums (&sums)[powers])
{
    for (const Part &part : parts)
        for (int k = 0; k < powers; k++) {
            const double away = part.power[k] / double{part_values} - expected[k + 1];
            exact_add(&sums[k].whole, part.power[k]);
            exact_add(&sums[k].distance, away);
            exact_add(&sums[k].square, away * away);
        }
}

double value_of(const exact_sum &s)
{
    return s.sum + s.lost;
}

void row_of(report *out, const char *number, int k, const Sums &sums, const double *expected,
            uint64_t count)
{
    char label[64];
    const auto values = static_cast<double>(count), parts = values / double{part_values};
    const double error = std::sqrt(expected[2 * k] - expected[k] * expected[k]);
    const double away = value_of(sums.distance) / parts;
    const double variance = (value_of(sums.square) - parts * away * away) / (parts - 1);
    snprintf(label, sizeof label, "gauss %s, mean of z^%d", number, k);
    report_expected(out, label, count, value_of(sums.whole) / values, expected[k],
                    error / std::sqrt(values),
                    std::sqrt(variance) / (error / std::sqrt(double{part_values})));
}

void rows_of(report *out, shuf_dtype dtype, const char *name, uint64_t count)
{
    double expected[MOMENTS_MOST + 1];
    Sums sums[powers] = {};
    std::vector<Part> parts(launch_parts);
    Part *memory;
    shuf__computation computation = timed_stream(SHUF_DISTRIBUTION_GAUSS, dtype, 7, launch_values);
    shuf__stream &s = computation.request.stream;
    s.stream = dtype; /* each type has its own stream */
    moments_expected(dtype, expected);
    check(cudaMalloc(&memory, launch_parts * sizeof *memory), "memory for sums");
    for (; s.offset < count; s.offset += launch_values) {
        check(moments_async(computation.request, memory), "moments");
        check(
            cudaMemcpy(parts.data(), memory, launch_parts * sizeof *memory, cudaMemcpyDeviceToHost),
            "moments");
        add_parts(parts, expected, sums);
    }
    check(cudaFree(memory), "memory for sums");
    for (int k = 1; k <= powers; k++)
        row_of(out, name, k, sums[k - 1], expected, s.offset);
}

} // namespace

void moment_rows(report *out, uint64_t count)
{
    rows_of(out, SHUF_F64, "f64", count);
    rows_of(out, SHUF_F32, "f32", count);
    rows_of(out, SHUF_F16, "f16", count);
    rows_of(out, SHUF_BF16, "bf16", count);
}

} // namespace bench
