/* SPDX-License-Identifier: MIT
 *
 * Calls of libshuf in the process, on the GPU. shuf_cuda_*() in the caller's CUDA streams: graphs,
 * several streams, threads and GPUs, a child of fork(). test_local.c has the values. Weighted
 * draws: tables, draws and samples equal those of the host, and refusals.
 */

#include "support/device_tests.cuh"

extern "C" {
#include "support/expected.h"
#include "support/random.h"
}

#include "host/weights.h"
#include "shuf.h"

#include <cinttypes>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace
{

/* ---- Streams ---- */

constexpr uint64_t most = 1 << 20; /* bytes of a result here */

void expect(shuf_status status)
{
    if (status != SHUF_OK)
        fail_msg("%s", shuf_message(nullptr));
}

shuf_request permutation(const char *algorithm, uint64_t n, uint64_t rows = 1)
{
    shuf_request request{};
    request.permutation.algorithm = algorithm;
    request.permutation.n = n;
    request.permutation.seed = 7;
    request.permutation.epochs = rows;
    return request;
}

shuf_request windowed(uint64_t n, uint64_t chunk, uint64_t window)
{
    shuf_request request = permutation("primefold", n);
    request.permutation.chunk = chunk;
    request.permutation.window = window;
    return request;
}

shuf_request numbers(shuf_distribution distribution, shuf_method method, shuf_dtype dtype)
{
    shuf_request request{};
    request.kind = SHUF_NUMBERS;
    request.numbers.distribution = distribution;
    request.numbers.method = method;
    request.numbers.seed = 7;
    request.numbers.offset = 3;
    request.numbers.count = 50001;
    request.numbers.mean =
        distribution == SHUF_EXPONENTIAL || distribution == SHUF_BERNOULLI ? 0.5 : 0;
    request.numbers.std = distribution == SHUF_GAUSS ? 1 : 0;
    request.numbers.bound = distribution == SHUF_INTEGERS ? 3u << 30 : 0;
    request.numbers.dtype = dtype;
    return request;
}

/* One request for each kernel and more. */
std::vector<shuf_request> all_kinds()
{
    return {permutation("primefold", 200),
            permutation("primefold", 1000),
            permutation("primefold", 70000),
            permutation("primefold", 4097, 20),
            permutation("philox24", 5000),
            permutation("philox24", 100001),
            permutation("philox24", 300, 30),
            permutation("lcg", 65536),
            windowed(100003, 100, 50),
            windowed(100003, 30, 5),
            windowed(99, 7, 3),
            numbers(SHUF_GAUSS, SHUF_TABLE, SHUF_F32),
            numbers(SHUF_GAUSS, SHUF_TABLE, SHUF_F64),
            numbers(SHUF_GAUSS, SHUF_TABLE, SHUF_BF16),
            numbers(SHUF_GAUSS, SHUF_BOX_MULLER, SHUF_F16),
            numbers(SHUF_UNIFORM, SHUF_TABLE, SHUF_U64),
            numbers(SHUF_EXPONENTIAL, SHUF_TABLE, SHUF_F32),
            numbers(SHUF_BERNOULLI, SHUF_TABLE, SHUF_U64),
            numbers(SHUF_INTEGERS, SHUF_TABLE, SHUF_U32)};
}

/* The bytes of the result, computed by the host. */
std::vector<uint8_t> expected_bytes(const shuf_request &request)
{
    shuf_shape shape;
    expect(shuf_shape_of(&request, &shape, nullptr, 0));
    std::vector<uint8_t> bytes(shape.bytes);
    expect(shuf_host_fill(&request, 1, bytes.data(), bytes.size()));
    return bytes;
}

/* Device memory for a result and its workspace. */
struct Place {
    uint8_t *out = nullptr, *workspace = nullptr;
    size_t room = 0;

    explicit Place(const shuf_request &request)
    {
        expect(shuf_cuda_workspace(&request, &room));
        check(cudaMalloc(&out, most));
        check(cudaMalloc(&workspace, room + 256));
        check(cudaMemset(out, 0xa5, most));
        check(cudaDeviceSynchronize());
    }
    Place(const Place &) = delete;
    Place &operator=(const Place &) = delete;
    ~Place()
    {
        cudaFree(out);
        cudaFree(workspace);
    }
    shuf_status fill(const shuf_request &request, cudaStream_t stream) const
    {
        return shuf_cuda_fill(&request, out, most, workspace, room, stream);
    }
    void check_against(const std::vector<uint8_t> &expected) const
    {
        std::vector<uint8_t> found(expected.size() + 64);
        check(cudaMemcpy(found.data(), out, found.size(), cudaMemcpyDeviceToHost));
        assert_memory_equal(found.data(), expected.data(), expected.size());
        for (size_t i = expected.size(); i < found.size(); i++)
            assert_int_equal(found[i], 0xa5);
    }
};

cudaStream_t new_stream()
{
    cudaStream_t stream;
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return stream;
}

/* Even the first use of a kernel can be captured. A replay writes the same values again. This test
 * is the first one, and loads all kernels. */
void a_graph_captures_and_replays(void **)
{
    const cudaStream_t stream = new_stream();
    for (const shuf_request &request : all_kinds()) {
        const Place place(request);
        cudaGraph_t graph;
        cudaGraphExec_t executable;
        check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
        expect(place.fill(request, stream));
        check(cudaStreamEndCapture(stream, &graph));
        check(cudaGraphInstantiate(&executable, graph, 0));
        for (int i = 0; i < 3; i++) {
            check(cudaMemsetAsync(place.out, 0xa5, most, stream));
            check(cudaGraphLaunch(executable, stream));
        }
        check(cudaStreamSynchronize(stream));
        place.check_against(expected_bytes(request));
        check(cudaGraphExecDestroy(executable));
        check(cudaGraphDestroy(graph));
    }
    check(cudaStreamDestroy(stream));
}

void refused(shuf_status status, const char *words)
{
    assert_int_equal(status, SHUF_INVALID);
    if (!strstr(shuf_message(nullptr), words))
        fail_msg("%s: expected '%s'", shuf_message(nullptr), words);
}

/* A few values of many windows, which the host computes. */
shuf_request sparse_windows()
{
    shuf_request request = windowed(uint64_t{1} << 40, 1000, 64);
    request.permutation.view = SHUF_VIEW_SLICE;
    request.permutation.count = 1000;
    request.permutation.stride = uint64_t{1} << 30;
    return request;
}

/* A graph would copy from memory of the host that is free. The capture stays valid. */
void a_graph_has_nothing_of_the_host(void **)
{
    const cudaStream_t stream = new_stream();
    const shuf_request sparse = sparse_windows(), dense = windowed(100003, 30, 5);
    const Place place(sparse), captured(dense);
    const shuf_source source = {.records = 1000};
    const uint64_t weight = 1;
    const shuf_stage stage = {0, &weight};
    shuf_mixture_request request{};
    shuf_mixture *mixture;
    size_t room;
    cudaGraph_t graph;
    request.sources = &source;
    request.source_count = 1;
    request.stages = &stage;
    request.stage_count = 1;
    expect(shuf_mixture_make(&request, &mixture));
    expect(shuf_cuda_mixture_workspace(mixture, 1000, &room));
    void *workspace;
    check(cudaMalloc(&workspace, room + 256));
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    refused(place.fill(sparse, stream), "stream: it is captured");
    refused(shuf_cuda_mixture_fill(mixture, 0, 1000, reinterpret_cast<uint64_t *>(place.out),
                                   workspace, room, stream),
            "stream: it is captured");
    expect(captured.fill(dense, stream));
    check(cudaStreamEndCapture(stream, &graph));
    expect(place.fill(sparse, stream));
    check(cudaStreamSynchronize(stream));
    place.check_against(expected_bytes(sparse));
    check(cudaGraphDestroy(graph));
    check(cudaFree(workspace));
    shuf_mixture_free(mixture);
    check(cudaStreamDestroy(stream));
}

void streams_are_independent(void **)
{
    const std::vector<shuf_request> kinds = all_kinds();
    std::vector<std::unique_ptr<Place>> places;
    std::vector<cudaStream_t> streams;
    for (const shuf_request &request : kinds) {
        places.push_back(std::make_unique<Place>(request));
        streams.push_back(new_stream());
    }
    for (int turn = 0; turn < 20; turn++)
        for (size_t i = 0; i < kinds.size(); i++)
            expect(places[i]->fill(kinds[i], streams[i]));
    check(cudaDeviceSynchronize());
    for (size_t i = 0; i < kinds.size(); i++) {
        places[i]->check_against(expected_bytes(kinds[i]));
        check(cudaStreamDestroy(streams[i]));
    }
}

void work_follows_the_stream(void **)
{
    const shuf_request request = permutation("primefold", 70000);
    const Place place(request);
    const cudaStream_t stream = new_stream();
    check(cudaMemsetAsync(place.out, 0, most, stream));
    expect(place.fill(request, stream));
    check(cudaMemsetAsync(place.out + 280000, 0xa5, most - 280000, stream));
    check(cudaStreamSynchronize(stream));
    place.check_against(expected_bytes(request));
    check(cudaStreamDestroy(stream));
}

void eight_threads_fill(void **)
{
    const std::vector<shuf_request> kinds = all_kinds();
    std::vector<std::thread> threads;
    std::vector<int> failures(8);
    for (int t = 0; t < 8; t++)
        threads.emplace_back([&, t] {
            const cudaStream_t stream = new_stream();
            uint8_t *out, *workspace;
            cudaMalloc(&out, most);
            cudaMalloc(&workspace, most);
            for (const shuf_request &request : kinds) {
                const std::vector<uint8_t> expected = expected_bytes(request);
                std::vector<uint8_t> found(expected.size());
                failures[t] += shuf_cuda_fill(&request, out, most, workspace, most, stream) != 0;
                cudaStreamSynchronize(stream);
                cudaMemcpy(found.data(), out, found.size(), cudaMemcpyDeviceToHost);
                failures[t] += found != expected;
            }
            cudaFree(out);
            cudaFree(workspace);
            cudaStreamDestroy(stream);
        });
    for (int t = 0; t < 8; t++) {
        threads[t].join();
        assert_int_equal(failures[t], 0);
    }
}

void managed_memory_is_filled(void **)
{
    const shuf_request request = numbers(SHUF_GAUSS, SHUF_TABLE, SHUF_F32);
    const std::vector<uint8_t> expected = expected_bytes(request);
    void *out;
    check(cudaMallocManaged(&out, expected.size()));
    expect(shuf_cuda_fill(&request, out, expected.size(), nullptr, 0, nullptr));
    check(cudaDeviceSynchronize());
    assert_memory_equal(out, expected.data(), expected.size());
    check(cudaFree(out));
}

/* The memory selects the device, and the current device of the thread stays. */
void the_memory_selects_the_device(void **)
{
    const shuf_request request = permutation("philox24", 100001);
    const std::vector<uint8_t> expected = expected_bytes(request);
    int devices = 0, now = -1;
    check(cudaGetDeviceCount(&devices));
    if (devices < 2)
        skip();
    const Place here(request);
    check(cudaSetDevice(1));
    const Place there(request);
    const cudaStream_t stream = new_stream();
    check(cudaSetDevice(0));
    assert_int_equal(shuf_cuda_fill(&request, there.out, most, here.workspace, here.room, stream),
                     SHUF_INVALID);
    assert_non_null(strstr(shuf_message(nullptr), "expected device 1"));
    expect(there.fill(request, stream));
    check(cudaGetDevice(&now));
    assert_int_equal(now, 0);
    check(cudaStreamSynchronize(stream));
    there.check_against(expected);
    check(cudaStreamDestroy(stream));
}

void a_child_of_fork_is_refused(void **)
{
    const shuf_request request = permutation("primefold", 1000);
    const Place place(request);
    int status;
    const pid_t child = fork();
    if (child == 0) {
        alarm(60);
        const bool refused =
            place.fill(request, nullptr) == SHUF_DEVICE && strstr(shuf_message(nullptr), "fork()");
        if (!refused)
            fprintf(stderr, "%s\n", shuf_message(nullptr));
        _exit(refused ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    expect(place.fill(request, nullptr));
    check(cudaDeviceSynchronize());
}

/* ---- Weighted draws (shuf_weights.h) ---- */

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
        cmocka_unit_test(a_graph_captures_and_replays),
        cmocka_unit_test(a_graph_has_nothing_of_the_host),
        cmocka_unit_test(streams_are_independent),
        cmocka_unit_test(work_follows_the_stream),
        cmocka_unit_test(eight_threads_fill),
        cmocka_unit_test(managed_memory_is_filled),
        cmocka_unit_test(the_memory_selects_the_device),
        cmocka_unit_test(a_child_of_fork_is_refused),
        cmocka_unit_test(tables),
        cmocka_unit_test(large_tables),
        cmocka_unit_test(draws),
        cmocka_unit_test(samples),
        cmocka_unit_test(bad_weights),
        cmocka_unit_test(bad_calls),
        cmocka_unit_test(graphs),
    };
    return run_device_tests(tests);
}
