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
#include "stream_check.h"
#include "stream_cuda.h"
#include "stream_kernels.cuh"
#include "stream_moments.cuh"
#include "timed.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

namespace
{

using bench::check;
using bench::die;
using bench::samples;
using bench::time_device;

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
        bench::moment_rows(b.out, count);
    else
        b.compare(!no_peers);
    b.backend->ops->close(b.backend);
    return report_end(b.out);
}
