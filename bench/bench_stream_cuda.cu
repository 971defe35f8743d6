/* SPDX-License-Identifier: MIT
 *
 * Measures streams on the GPU: device time, with the values in device memory. Each distribution and
 * type has its rate next to a memset of the same bytes. Other rows are cuRAND, torch, and Gaussian
 * values that are summed in registers and not stored. The program checks values before it times
 * them. With --moments N, it measures moments 1 to 8 of N values of each Gaussian type instead.
 */
#include "backend.h"
#include "cuda/stream.cuh"
#include "device.cuh"
#include "report.h"
#include "shuf/half.h"
#include "shuf_dtype.h"
#include "stream_check.h"
#include "stream_cuda_peers.h"
#include "stream_kernels.cuh"
#include "timed.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace
{

using bench::check;
using bench::die;
using bench::Part;
using bench::part_values;
using bench::powers;
using bench::samples;
using bench::time_device;

/* ---- The expected moments of normal values ---- */

/* For 16-bit numbers these are the moments of the normal law
 * after rounding to the type. */

constexpr int moments_most = 16;

/* A sum with compensation of its rounding errors (Neumaier). */
struct ExactSum {
    double sum, lost;
};

/* P(a < z < b) for 0 <= a < b. The difference of upper tails keeps its precision for large a. */
long double probability(long double a, long double b)
{
    return (std::erfc(a * std::sqrt(0.5L)) - std::erfc(b * std::sqrt(0.5L))) / 2;
}

/* The moments of the normal law: 1, 0, 1, 0, 3, 0, 15, ... */
void of_law(double moment[moments_most + 1])
{
    for (int k = 0; k <= moments_most; k++)
        moment[k] = k == 0 ? 1 : k == 1 ? 0 : (k - 1) * moment[k - 2];
}

/* The moments after rounding: a 16-bit number has the probability of the interval that rounds to
 * it. The terms above 40 are below the precision of a double. */
void of_rounded(float (*value)(uint16_t), double moment[moments_most + 1])
{
    long double sum[moments_most + 1] = {0};
    long double below = 0;
    for (uint16_t bits = 1; value(bits) < 40; bits++) {
        const long double x = value(bits), next = value(static_cast<uint16_t>(bits + 1));
        const long double from = (below + x) / 2, p = 2 * probability(from, (x + next) / 2);
        for (int k = 0; k <= moments_most; k += 2)
            sum[k] += p * std::pow(x, k);
        below = x;
    }
    sum[0] += 1 - 2 * probability(value(1) / 2.0L, INFINITY);
    for (int k = 0; k <= moments_most; k++)
        moment[k] = static_cast<double>(sum[k]);
}

/* Sets moment[k] to E z^k, k = 0 .. moments_most. */
void moments_expected(shuf_dtype dtype, double moment[moments_most + 1])
{
    switch (dtype) {
    case SHUF_F16:
        of_rounded(shuf_of_f16, moment);
        break;
    case SHUF_BF16:
        of_rounded(shuf_of_bf16, moment);
        break;
    default:
        of_law(moment);
    }
}

void exact_add(ExactSum &s, double x)
{
    const double sum = s.sum + x;
    s.lost += std::fabs(s.sum) >= std::fabs(x) ? (s.sum - sum) + x : (x - sum) + s.sum;
    s.sum = sum;
}

/* ---- Moments ---- */

/* Moments 1 to 8 of Gaussian streams, over more values than fit into memory.
 *
 * For each moment the report has the expected value for independent normal
 * numbers of that type, its standard error, and the difference in standard errors. Values of a
 * block are made from the same table numbers. So the report also compares the spread of the parts'
 * means with the spread for independent values. */

constexpr uint64_t launch_parts = 1 << 14;
constexpr uint64_t launch_values = launch_parts * part_values;

/* Sums for one power: over all values, and over the differences of the parts' means from the
 * expected moment. */
struct Sums {
    ExactSum whole, distance, square;
};

void add_parts(const std::vector<Part> &parts, const double *expected, Sums (&sums)[powers])
{
    for (const Part &part : parts)
        for (int k = 0; k < powers; k++) {
            const double away = part.power[k] / double{part_values} - expected[k + 1];
            exact_add(sums[k].whole, part.power[k]);
            exact_add(sums[k].distance, away);
            exact_add(sums[k].square, away * away);
        }
}

double value_of(const ExactSum &s)
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
    double expected[moments_most + 1];
    Sums sums[powers] = {};
    std::vector<Part> parts(launch_parts);
    Part *memory;
    shuf__computation computation = timed_stream(SHUF_DISTRIBUTION_GAUSS, dtype, 7, launch_values);
    shuf__stream &s = computation.request.stream;
    s.stream = dtype; /* each type has its own stream */
    moments_expected(dtype, expected);
    check(cudaMalloc(&memory, launch_parts * sizeof *memory), "memory for sums");
    for (; s.offset < count; s.offset += launch_values) {
        check(bench::moments_async(computation.request, memory), "moments");
        check(
            cudaMemcpy(parts.data(), memory, launch_parts * sizeof *memory, cudaMemcpyDeviceToHost),
            "moments");
        add_parts(parts, expected, sums);
    }
    check(cudaFree(memory), "memory for sums");
    for (int k = 1; k <= powers; k++)
        row_of(out, name, k, sums[k - 1], expected, s.offset);
}

/* Rows of each type, over `count` values, rounded up to a whole launch. */
void moment_rows(report *out, uint64_t count)
{
    rows_of(out, SHUF_F64, "f64", count);
    rows_of(out, SHUF_F32, "f32", count);
    rows_of(out, SHUF_F16, "f16", count);
    rows_of(out, SHUF_BF16, "bf16", count);
}

/* ---- Rates ---- */

constexpr uint64_t sizes[] = {uint64_t{1} << 20, uint64_t{1} << 30};
constexpr uint64_t most = uint64_t{1} << 33; /* bytes of values */

struct Kind {
    shuf__distribution distribution;
    shuf_dtype dtype;
    const char *name;
    unsigned width;
};

/* Sorted by width: the memset of a width comes before its kinds. */
constexpr Kind kinds[] = {
    {SHUF_DISTRIBUTION_GAUSS, SHUF_F64, "gauss f64", 8},
    {SHUF_DISTRIBUTION_BOX_MULLER, SHUF_F64, "box-muller f64", 8},
    {SHUF_DISTRIBUTION_UNIFORM, SHUF_F64, "uniform f64", 8},
    {SHUF_DISTRIBUTION_UNIFORM, SHUF_U64, "uniform u64", 8},
    {SHUF_DISTRIBUTION_EXPONENTIAL, SHUF_F64, "exponential f64", 8},
    {SHUF_DISTRIBUTION_INTEGERS, SHUF_U64, "integers u64", 8},
    {SHUF_DISTRIBUTION_GAUSS, SHUF_F32, "gauss f32", 4},
    {SHUF_DISTRIBUTION_BOX_MULLER, SHUF_F32, "box-muller f32", 4},
    {SHUF_DISTRIBUTION_UNIFORM, SHUF_F32, "uniform f32", 4},
    {SHUF_DISTRIBUTION_UNIFORM, SHUF_U32, "uniform u32", 4},
    {SHUF_DISTRIBUTION_EXPONENTIAL, SHUF_F32, "exponential f32", 4},
    {SHUF_DISTRIBUTION_BERNOULLI, SHUF_U32, "bernoulli u32", 4},
    {SHUF_DISTRIBUTION_INTEGERS, SHUF_U32, "integers u32", 4},
    {SHUF_DISTRIBUTION_GAUSS, SHUF_F16, "gauss f16", 2},
    {SHUF_DISTRIBUTION_GAUSS, SHUF_BF16, "gauss bf16", 2},
    {SHUF_DISTRIBUTION_BOX_MULLER, SHUF_F16, "box-muller f16", 2},
    {SHUF_DISTRIBUTION_BOX_MULLER, SHUF_BF16, "box-muller bf16", 2},
};

struct Share {
    std::string label;
    uint64_t n;
    double percent;
};

struct Bench {
    report *out;
    shuf__backend *backend;
    shuf__block values;
    int sm_count;
    double memset_ns; /* the last memset's time */
    std::vector<Share> shares;

    static shuf__computation timed(const Kind &kind, uint64_t n)
    {
        return timed_stream(kind.distribution, kind.dtype, 7, n);
    }

    /* Returns the median. It leaves ns[] in order of time for the report. */
    static double median_of(const double (&ns)[samples])
    {
        double sorted[samples];
        std::copy(ns, ns + samples, sorted);
        std::sort(sorted, sorted + samples);
        return sorted[samples / 2];
    }

    void row(const std::string &label, uint64_t n, uint64_t bytes, double (&ns)[samples])
    {
        report_add(out, label.c_str(), n, n, "values", bytes, ns, samples);
    }

    void memset_of(unsigned width, uint64_t n)
    {
        const std::string label = "memset, " + std::to_string(width) + " bytes a value";
        double ns[samples];
        time_device("memset", ns,
                    [&] { check(cudaMemsetAsync(values.memory, 1, n * width), "memset"); });
        memset_ns = median_of(ns);
        row(label, n, n * width, ns);
    }

    void draw(const Kind &kind, uint64_t n)
    {
        const shuf__computation computation = timed(kind, n);
        shuf__error error;
        double ns[samples];
        for (int i = -1; i < samples; i++) { /* the first is a warm-up and is checked */
            uint64_t took;
            if (shuf__backend_compute(backend, &computation, &values, &took, &error) ||
                (i < 0 && stream_check(backend, &values, &computation.request, &error)))
                die(kind.name, error.text);
            if (i >= 0)
                ns[i] = static_cast<double>(took);
        }
        shares.push_back({kind.name, n, 100 * memset_ns / median_of(ns)});
        row(kind.name, n, n * kind.width, ns);
    }

    void stored(uint64_t n)
    {
        for (const Kind &kind : kinds) {
            if (&kind == kinds || kind.width != (&kind)[-1].width)
                memset_of(kind.width, n);
            draw(kind, n);
        }
    }

    void not_stored(const Kind &kind, uint64_t n)
    {
        const shuf__computation computation = timed(kind, n);
        void *sums;
        double ns[samples];
        check(cudaMalloc(&sums, bench::not_stored_sums(sm_count)), "memory for sums");
        time_device(kind.name, ns, [&] {
            check(bench::not_stored_async(computation.request, sm_count, sums), kind.name);
        });
        check(cudaFree(sums), "memory for sums");
        row(std::string(kind.name) + ", summed, not stored", n, 0, ns);
    }

    void curand(uint64_t n, bool dynamic)
    {
        static constexpr struct {
            peer_curand kind;
            const char *name;
            unsigned width;
        } rows[] = {{PEER_NORMAL_F64, "normal f64", 8},
                    {PEER_NORMAL_F32, "normal f32", 4},
                    {PEER_WORDS_U32, "u32", 4},
                    {PEER_UNIFORM_F32, "uniform f32", 4},
                    {PEER_UNIFORM_F64, "uniform f64", 8}};
        if (!peer_curand_begin(out, dynamic))
            return;
        for (const auto &r : rows) {
            const std::string label = std::string("cuRAND Philox, ") + r.name;
            const auto work = [&] { return peer_curand_draw(r.kind, values.memory, n); };
            double ns[samples];
            if (!work()) {
                report_fact(out, label.c_str(), "cuRAND returned an error");
                continue;
            }
            time_device(label.c_str(), ns, work);
            row(dynamic ? label + ", dynamic order" : label, n, n * r.width, ns);
        }
        peer_curand_end();
    }

    void open()
    {
        shuf__error error;
        sm_count = bench::say_device(out);
        if (shuf__backend_open("cuda:0", 0, &backend, &error))
            die("backend", error.text);
    }

    void compare(bool peers)
    {
        shuf__error error;
        if (backend->ops->alloc(backend, backend->ops->own, most, &values, &error))
            die("memory for values", error.text);
        for (const uint64_t n : sizes) {
            stored(n);
            not_stored(kinds[0], n);
            not_stored(kinds[6], n);
            not_stored(kinds[14], n);
            for (const bool dynamic : {false, true})
                if (peers)
                    curand(n, dynamic);
        }
        for (const Share &s : shares)
            report_value(out, (s.label + ", bytes a second").c_str(), s.n, s.percent,
                         "% of memset's");
        backend->ops->free(backend, &values);
    }
};

/* "1e12" or "2^40". */
uint64_t number(const char *option, const char *text)
{
    char *end;
    double value = strtod(text, &end);
    if (*end == '^')
        value = std::pow(value, strtod(end + 1, &end));
    if (end == text || *end != '\0' || !(value >= 1 && value <= 0x1p50) ||
        value != std::floor(value))
        die(option, "expected an integer from 1 to 2^50, such as 1e12 or 2^40");
    return static_cast<uint64_t>(value);
}

} // namespace

int main(int argc, char **argv)
{
    Bench b{};
    const char *moments = nullptr, *no_peers = nullptr;
    const report_option options[] = {
        {"--moments", "N", &moments}, {"--no-peers", nullptr, &no_peers}, {}};
    b.out = report_begin_with("streams on a GPU, device time", options, argc, argv);
    const uint64_t count = moments ? number("--moments", moments) : 0;
    if (!moments && !no_peers)
        torch_rows(b.out, sizes, sizeof sizes / sizeof *sizes);
    b.open();
    if (moments)
        moment_rows(b.out, count);
    else
        b.compare(!no_peers);
    b.backend->ops->close(b.backend);
    return report_end(b.out);
}
