/* SPDX-License-Identifier: MIT
 *
 * Weighted draws on the GPU (shuf_weights.h): tables, draws and samples equal those of the host,
 * and refusals.
 */
#include "support/device_tests.cuh"

extern "C" {
#include "support/random.h"
}

#include "host/weights.h"
#include "shuf.h"

#include <cinttypes>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

namespace
{

void expect(shuf_status status)
{
    if (status != SHUF_OK)
        fail_msg("%s", shuf_message(nullptr));
}

void refused(shuf_status status, const char *words)
{
    assert_int_equal(status, SHUF_INVALID);
    if (!strstr(shuf_message(nullptr), words))
        fail_msg("%s: expected '%s'", shuf_message(nullptr), words);
}

/* Device memory. */
template <typename T> struct Memory {
    T *at = nullptr;
    size_t count;

    explicit Memory(size_t of) : count(of)
    {
        check(cudaMalloc(&at, (count ? count : 1) * sizeof(T)));
        check(cudaMemset(at, 0xa5, count * sizeof(T)));
    }
    explicit Memory(const std::vector<T> &values) : Memory(values.size())
    {
        check(cudaMemcpy(at, values.data(), count * sizeof(T), cudaMemcpyHostToDevice));
    }
    Memory(Memory &&other) : at(other.at), count(other.count)
    {
        other.at = nullptr;
    }
    ~Memory()
    {
        cudaFree(at);
    }
    std::vector<T> read() const
    {
        std::vector<T> values(count);
        check(cudaMemcpy(values.data(), at, count * sizeof(T), cudaMemcpyDeviceToHost));
        return values;
    }
};

template <typename T> constexpr shuf_dtype type_of = SHUF_U64;
template <> constexpr shuf_dtype type_of<double> = SHUF_F64;
template <> constexpr shuf_dtype type_of<float> = SHUF_F32;

/* ---- Weights ---- */

enum { LAWS = 6 };

/* Weights of one law: equal, of one magnitude, of all magnitudes, few above 0, one much above the
 * others, or by the bits of their type. */
template <typename T> std::vector<T> weights_of(unsigned law, uint64_t count)
{
    std::vector<T> weights(count);
    for (T &weight : weights) {
        const uint64_t bits = random_u64();
        const double share = static_cast<double>(bits >> 12) / 4503599627370496.0;
        const double magnitude = std::ldexp(share + 1, static_cast<int>(random_below(60)));
        weight = static_cast<T>(law == 0   ? 3
                                : law == 1 ? share * 1e6
                                : law == 2 ? magnitude
                                : law == 3 ? (bits % 100 ? 0 : magnitude)
                                           : 1 + bits % 4);
        if (law == 5) { /* any number of the type that is a weight */
            memcpy(&weight, &bits, sizeof weight);
            if (!(static_cast<double>(weight) >= 0) || std::isinf(static_cast<double>(weight)))
                weight = 0;
        }
    }
    weights[random_below(count)] = static_cast<T>(law == 4 ? 1e15 : 1);
    return weights;
}

template <typename T> shuf__weight_table host_table(const std::vector<T> &weights)
{
    const shuf__weight_array array = {weights.data(), type_of<T>, weights.size()};
    const shuf__computation nobody{};
    shuf__weight_table table{};
    shuf__error error{};
    if (shuf__weight_table_make(&table, &array, &nobody, &error))
        fail_msg("%s", error.text);
    return table;
}

/* The table in device memory. */
template <typename T> Memory<uint64_t> make_table(const std::vector<T> &weights)
{
    size_t room;
    expect(shuf_cuda_weights_workspace(weights.size(), &room));
    const Memory<T> values(weights);
    const Memory<char> workspace(room);
    Memory<uint64_t> table(size_t{1} << shuf_weights_bits(weights.size()));
    expect(shuf_cuda_weights_make(values.at, type_of<T>, weights.size(), table.at,
                                  table.count * sizeof *table.at, workspace.at, room, nullptr));
    check(cudaDeviceSynchronize());
    return table;
}

/* ---- Tables and draws ---- */

template <typename T> void compare_tables(unsigned law, uint64_t count)
{
    const std::vector<T> weights = weights_of<T>(law, count);
    shuf__weight_table expected = host_table(weights);
    const Memory<uint64_t> made = make_table(weights);
    const std::vector<uint64_t> table = made.read();
    for (uint64_t j = 0; j < table.size(); j++)
        if (table[j] != expected.column[j])
            fail_msg("law %u, %" PRIu64 " weights, column %" PRIu64 ": %" PRIx64
                     ", by the host %" PRIx64,
                     law, count, j, table[j], expected.column[j]);
    shuf__weight_table_free(&expected);
}

void tables(void **)
{
    random_start("tables");
    for (int round = 0; round < 150; round++) {
        const unsigned law = static_cast<unsigned>(round % LAWS);
        const uint64_t count =
            round < 40 ? 1 + static_cast<uint64_t>(round / 2) : random_size(1 << 17);
        compare_tables<uint64_t>(law, count);
        compare_tables<double>(law, count);
        compare_tables<float>(law, count);
    }
}

void large_tables(void **)
{
    random_start("large_tables");
    for (unsigned law = 0; law < LAWS; law++)
        compare_tables<float>(law, (1 << 22) + random_below(1 << 21));
}

void draws(void **)
{
    random_start("draws");
    for (int round = 0; round < 100; round++) {
        const uint64_t n = random_size(1 << 16), seed = random_u64(), epoch = random_u64();
        const uint64_t count = random_size(50000);
        const uint64_t stride = random_below(2) ? 1 : random_size(uint64_t{1} << 40);
        const uint64_t first = random_below((uint64_t{1} << 62) - (count - 1) * stride);
        const std::vector<double> weights =
            weights_of<double>(static_cast<unsigned>(round % LAWS), n);
        const Memory<uint64_t> table = make_table(weights), out(count + 1);
        std::vector<uint64_t> expected(count);
        shuf_weights *host;
        expect(shuf_cuda_weights_draw(table.at, n, seed, epoch, first, count, stride, out.at,
                                      nullptr));
        expect(shuf_weights_make(weights.data(), SHUF_F64, n, &host));
        expect(shuf_weights_draw(host, seed, epoch, first, count, stride, 1, expected.data()));
        shuf_weights_free(host);
        expected.push_back(UINT64_C(0xa5a5a5a5a5a5a5a5)); /* not written */
        assert_true(out.read() == expected);
    }
}

/* ---- Samples ---- */

template <typename T> void compare_samples(unsigned law, uint64_t count)
{
    const std::vector<T> weights = weights_of<T>(law, count);
    const uint64_t seed = random_u64(), epoch = random_u64();
    uint64_t positive = 0;
    size_t room;
    for (const T weight : weights)
        positive += weight > 0;
    const uint64_t sample = random_below(2) ? positive : random_size(positive);
    expect(shuf_cuda_weights_sample_workspace(count, &room));
    const Memory<T> values(weights);
    const Memory<char> workspace(room);
    const Memory<uint64_t> out(sample), more(positive + 1);
    std::vector<uint64_t> expected(sample);
    expect(shuf_cuda_weights_sample(values.at, type_of<T>, count, seed, epoch, sample, out.at,
                                    workspace.at, room, nullptr));
    expect(shuf_weights_sample(weights.data(), type_of<T>, count, seed, epoch, sample,
                               expected.data()));
    assert_true(out.read() == expected);
    refused(shuf_cuda_weights_sample(values.at, type_of<T>, count, seed, epoch, positive + 1,
                                     more.at, workspace.at, room, nullptr),
            "the number of weights above 0");
}

void samples(void **)
{
    random_start("samples");
    for (int round = 0; round < 60; round++) {
        const unsigned law = static_cast<unsigned>(round % LAWS);
        const uint64_t count = random_size(1 << 17);
        compare_samples<uint64_t>(law, count);
        compare_samples<double>(law, count);
        compare_samples<float>(law, count);
    }
}

/* ---- Refusals ---- */

template <typename T> void refuse(const std::vector<T> &weights, const char *words)
{
    const Memory<T> values(weights);
    size_t room;
    expect(shuf_cuda_weights_workspace(weights.size(), &room));
    const Memory<char> workspace(room);
    const Memory<uint64_t> table(size_t{1} << shuf_weights_bits(weights.size()));
    refused(shuf_cuda_weights_make(values.at, type_of<T>, weights.size(), table.at,
                                   table.count * sizeof *table.at, workspace.at, room, nullptr),
            words);
    for (const uint64_t column : table.read())
        assert_int_equal(column, UINT64_C(0xa5a5a5a5a5a5a5a5));
}

void bad_weights(void **)
{
    std::vector<double> wide(100000, 1.0);
    refuse(std::vector<double>(3, 0.0), "weights: all are 0, expected one above 0");
    refuse(std::vector<float>{1, NAN, -1}, "weights[1] nan: expected a finite number of 0 or more");
    refuse(std::vector<float>{1, INFINITY}, "weights[1] inf: expected");
    wide[77777] = -2.5;
    wide[99999] = NAN;
    refuse(wide, "weights[77777] -2.5: expected a finite number of 0 or more");
}

void bad_calls(void **)
{
    const std::vector<double> weights(1000, 1.0);
    const Memory<double> values(weights);
    const Memory<uint64_t> table(1024);
    size_t room;
    expect(shuf_cuda_weights_workspace(1000, &room));
    const Memory<char> workspace(room);
    const auto make = [&](const void *from, uint64_t count, uint64_t *to, size_t bytes, void *work,
                          size_t work_bytes) {
        return shuf_cuda_weights_make(from, SHUF_F64, count, to, bytes, work, work_bytes, nullptr);
    };
    void *const inside = table.at + 16;
    refused(make(weights.data(), 1000, table.at, 8192, workspace.at, room), "memory of the host");
    refused(make(values.at, 1000, table.at, 8191, workspace.at, room),
            "table of 8191 bytes: expected 8192");
    refused(make(values.at, 1000, table.at, 8192, workspace.at, room - 1), "workspace of ");
    refused(make(values.at, 1000, table.at, 8192, inside, room), "expected a multiple of 256");
    refused(make(values.at, 1000, reinterpret_cast<uint64_t *>(workspace.at + 256), 8192,
                 workspace.at, room),
            "workspace and table overlap");
    refused(make(values.at, 0, table.at, 8192, workspace.at, room), "expected 1 to 2^32");
    refused(shuf_cuda_weights_workspace((uint64_t{1} << 30) + 1, &room), "a GPU takes 2^30");
    refused(
        shuf_cuda_weights_draw(table.at, 1000, 7, 0, uint64_t{1} << 62, 1, 1, table.at, nullptr),
        "numbers below 2^62");
    expect(shuf_cuda_weights_draw(table.at, 1000, 7, 0, 0, 0, 1, nullptr, nullptr));
}

/* A graph draws, but cannot make the table. */
void graphs(void **)
{
    const std::vector<uint64_t> weights{5, 1, 1, 9, 0, 2};
    const Memory<uint64_t> values(weights), table = make_table(weights), out(1000);
    std::vector<uint64_t> expected(1000);
    size_t room;
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t run;
    expect(shuf_cuda_weights_workspace(6, &room));
    const Memory<char> workspace(room);
    check(cudaStreamCreate(&stream));
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    refused(
        shuf_cuda_weights_make(values.at, SHUF_U64, 6, table.at, 64, workspace.at, room, stream),
        "stream: it is captured");
    expect(shuf_cuda_weights_draw(table.at, 6, 7, 3, 11, 1000, 1, out.at, stream));
    check(cudaStreamEndCapture(stream, &graph));
    check(cudaGraphInstantiate(&run, graph, 0));
    check(cudaGraphLaunch(run, stream));
    check(cudaStreamSynchronize(stream));
    shuf_weights *host;
    expect(shuf_weights_make(weights.data(), SHUF_U64, 6, &host));
    expect(shuf_weights_draw(host, 7, 3, 11, 1000, 1, 1, expected.data()));
    shuf_weights_free(host);
    assert_true(out.read() == expected);
    check(cudaGraphExecDestroy(run));
    check(cudaGraphDestroy(graph));
    check(cudaStreamDestroy(stream));
}

} // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(tables),  cmocka_unit_test(large_tables), cmocka_unit_test(draws),
        cmocka_unit_test(samples), cmocka_unit_test(bad_weights),  cmocka_unit_test(bad_calls),
        cmocka_unit_test(graphs),
    };
    return run_device_tests(tests);
}
