/* SPDX-License-Identifier: MIT
 *
 * shuf_cuda_*() in the caller's CUDA streams: graphs, several streams, threads and GPUs, a child of
 * fork(). test_local.c has the values.
 */
#include "support/device_tests.cuh"

extern "C" {
#include "support/expected.h"
}

#include "shuf.h"

#include <cstring>
#include <memory>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace
{

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

} // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(a_graph_captures_and_replays),
        cmocka_unit_test(streams_are_independent),
        cmocka_unit_test(work_follows_the_stream),
        cmocka_unit_test(eight_threads_fill),
        cmocka_unit_test(managed_memory_is_filled),
        cmocka_unit_test(the_memory_selects_the_device),
        cmocka_unit_test(a_child_of_fork_is_refused),
    };
    return run_device_tests(tests);
}
