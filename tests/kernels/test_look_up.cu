/* SPDX-License-Identifier: MIT
 *
 * Look-ups of primefold on the GPU, compared with its inline C: every form, both widths and
 * directions, and every place in a group of threads.
 */
#include "cuda/permute.cuh"

#include "support/device_tests.cuh"

extern "C" {
#include "support/random.h"
}

#include <vector>

namespace
{

/* A number of n or more has no value. */
uint64_t expected_of(const shuf_primefold &f, bool inverse, uint64_t at, uint64_t largest)
{
    if (at >= f.shape.n)
        return largest;
    return inverse ? shuf_primefold_inverse(&f, at) : shuf_primefold_forward(&f, at);
}

template <typename Value> void check_look_ups(uint64_t n, uint64_t count, bool inverse)
{
    constexpr Value largest = static_cast<Value>(-1);
    std::vector<Value> at(count), values(count, 0);
    for (uint64_t i = 0; i < count; i++)
        at[i] = static_cast<Value>(i == 0 ? n - 1 : i == 1 ? 0 : random_below(n));
    if (count > 9 && n <= largest) {
        at[7] = static_cast<Value>(n);
        at[9] = largest;
    }
    shuf__look_up l{};
    l.inverse = inverse;
    shuf__permutation &p = l.permutation;
    p.algorithm = SHUF_ALGORITHM_PRIMEFOLD;
    p.n = n;
    p.seed = random_u64();
    p.epoch = random_u64();

    Value *device;
    const uint64_t bytes = count * sizeof(Value), half = (count + 3) / 4 * 4;
    check(cudaMalloc(&device, 2 * half * sizeof(Value)));
    check(cudaMemcpy(device, at.data(), bytes, cudaMemcpyHostToDevice));
    check(shuf::primefold_look_up_async(l, sizeof(Value), device, device + half, count, nullptr));
    check(cudaMemcpy(values.data(), device + half, bytes, cudaMemcpyDeviceToHost));
    check(cudaFree(device));

    const shuf_primefold f = shuf_primefold_make(n, p.seed, p.epoch);
    for (uint64_t i = 0; i < count; i++)
        if (values[i] != expected_of(f, inverse, at[i], largest))
            fail_msg("n %llu, seed %llu, epoch %llu, %s of %llu: %llu, expected %llu",
                     (unsigned long long)n, (unsigned long long)p.seed, (unsigned long long)p.epoch,
                     inverse ? "position" : "value", (unsigned long long)at[i],
                     (unsigned long long)values[i],
                     (unsigned long long)expected_of(f, inverse, at[i], largest));
}

template <typename Value> void check_look_ups(uint64_t n, uint64_t count)
{
    check_look_ups<Value>(n, count, false);
    check_look_ups<Value>(n, count, true);
}

void every_size_matches(void **)
{
    random_start("every_size_matches");
    check_look_ups<uint32_t>(257, 1021);
    for (uint64_t k = 9; k <= 62; k++)
        for (uint64_t n : {(uint64_t{1} << k) - 1, uint64_t{1} << k, (uint64_t{1} << k) + 1}) {
            if (n > uint64_t{1} << 62)
                continue;
            if (n <= uint64_t{1} << 32)
                check_look_ups<uint32_t>(n, 1021);
            check_look_ups<uint64_t>(n, 1021);
        }
}

void every_count_matches(void **)
{
    random_start("every_count_matches");
    for (uint64_t count = 1; count < 40; count++)
        check_look_ups<uint32_t>(300, count);
}

/* The number of look-ups is so large that some need a cycle walk or correct a wrong estimate. */
void many_look_ups_match(void **)
{
    random_start("many_look_ups_match");
    check_look_ups<uint32_t>((1u << 29) + 1, 2000003);
    check_look_ups<uint64_t>((uint64_t{1} << 33) + 1, 2000003);
    check_look_ups<uint64_t>((uint64_t{1} << 38) - (uint64_t{1} << 33), 2000003);
    check_look_ups<uint64_t>((uint64_t{1} << 38) + 1, 2000003);
}

/* A small permutation is made by exchanges. */
void every_small_size_matches(void **)
{
    random_start("every_small_size_matches");
    for (uint64_t n = 1; n <= SHUF_PRIMEFOLD_EXACT; n++) {
        check_look_ups<uint32_t>(n, 300);
        check_look_ups<uint64_t>(n, 11);
    }
}

} // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(every_size_matches),
        cmocka_unit_test(every_count_matches),
        cmocka_unit_test(many_look_ups_match),
        cmocka_unit_test(every_small_size_matches),
    };
    return run_device_tests(tests);
}
