/* SPDX-License-Identifier: MIT
 *
 * The method of Box and Muller on the GPU, compared with the host: its faster square roots, its
 * conversions, and values from words of all magnitudes.
 */
#include "shuf/box_muller.h"

#include "support/device_tests.cuh"

extern "C" {
#include "support/random.h"
}

#include <vector>

namespace
{

constexpr int threads = 256;

/* ---- Square roots: the number of wrong ones ---- */

__global__ void wrong_roots_f32(uint32_t first, uint32_t count, unsigned long long *wrong)
{
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += gridDim.x * blockDim.x) {
        const float x = __uint_as_float(first + i);
#ifdef __CUDA_ARCH__
        if (shuf__sqrt_f32(x) != __fsqrt_rn(x))
            atomicAdd(wrong, 1ULL);
#endif
    }
}

/* Counts wrong square roots of numbers near the squares of random numbers. Also counts wrong
 * conversions of random integers. */
__global__ void wrong_roots_f64(const uint64_t *bits, int count, unsigned long long *wrong)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count)
        return;
    const double root = __longlong_as_double(static_cast<long long>(bits[i]));
    const long long square = __double_as_longlong(root * root);
    for (int k = -4; k <= 4; k++) {
        const double x = __longlong_as_double(square + k);
#ifdef __CUDA_ARCH__
        if (shuf__sqrt_f64(x) != __dsqrt_rn(x))
            atomicAdd(wrong, 1ULL);
#endif
    }
    const uint64_t whole = bits[i] >> (1 + i % 62);
#ifdef __CUDA_ARCH__
    if (shuf__double_of(whole) != static_cast<double>(whole))
        atomicAdd(wrong, 1ULL);
#endif
}

struct DeviceCount {
    unsigned long long *device;

    DeviceCount()
    {
        check(cudaMalloc(&device, sizeof *device));
        check(cudaMemset(device, 0, sizeof *device));
    }
    ~DeviceCount()
    {
        cudaFree(device);
    }
    unsigned long long value() const
    {
        unsigned long long value = 0;
        check(cudaMemcpy(&value, device, sizeof value, cudaMemcpyDeviceToHost));
        return value;
    }
};

/* All floats from 2^-70 to 2^10. */
void square_roots_of_floats_are_exact(void **)
{
    const DeviceCount wrong;
    constexpr uint32_t first = (127 - 70) << 23, end = (127 + 10) << 23;
    wrong_roots_f32<<<4096, threads>>>(first, end - first, wrong.device);
    check(cudaGetLastError());
    assert_int_equal(wrong.value(), 0);
}

void square_roots_of_doubles_are_exact(void **)
{
    constexpr int count = 1 << 22;
    const DeviceCount wrong;
    std::vector<uint64_t> bits(count);
    uint64_t *device;
    random_start("square_roots_of_doubles_are_exact");
    for (uint64_t &b : bits) /* exponents from -64 to 4 */
        b = (1023 - 64 + random_below(69)) << 52 | random_u64() >> 12;
    check(cudaMalloc(&device, count * sizeof *device));
    check(cudaMemcpy(device, bits.data(), count * sizeof *device, cudaMemcpyHostToDevice));
    wrong_roots_f64<<<count / threads, threads>>>(device, count, wrong.device);
    check(cudaGetLastError());
    assert_int_equal(wrong.value(), 0);
    check(cudaFree(device));
}

/* ---- Values ---- */

template <typename Words, typename Value> struct Method;

template <> struct Method<shuf_box_muller_words, float> {
    static __host__ __device__ void pair(const shuf_box_muller_words &w, float *z)
    {
        shuf_box_muller_pair_f32(&w, z);
    }
};

template <> struct Method<shuf_box_muller_wide, double> {
    static __host__ __device__ void pair(const shuf_box_muller_wide &w, double *z)
    {
        const shuf_box_muller_terms terms = shuf_box_muller_terms_make();
        shuf_box_muller_pair_f64(&terms, &w, z);
    }
};

template <typename Words, typename Value>
__global__ void make_pairs(const Words *words, int count, Value *z)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        Method<Words, Value>::pair(words[i], z + 2 * i);
}

/* A random word, or one whose bits below the highest begin with many zeros or many ones. */
uint64_t random_word(unsigned bits)
{
    const uint64_t all = UINT64_MAX >> (64 - bits), word = random_u64() & all;
    const uint64_t top = word & ~(all >> 1);
    const uint64_t small = (random_u64() & (all >> 1)) >> random_below(bits);
    return random_below(4) == 0 ? word : random_below(2) ? top | small : top | (small ^ all >> 1);
}

template <typename Words, typename Value> void compare_with_host(unsigned bits)
{
    constexpr int count = 1 << 18;
    std::vector<Words> words(count);
    std::vector<Value> z(2 * count);
    Words *words_on_device;
    Value *z_on_device;
    for (Words &w : words)
        for (int i = 0; i < 2; i++) {
            w.radius[i] = static_cast<decltype(+w.radius[i])>(random_word(bits));
            w.angle[i] = static_cast<decltype(+w.angle[i])>(random_word(bits));
        }
    check(cudaMalloc(&words_on_device, count * sizeof(Words)));
    check(cudaMalloc(&z_on_device, 2 * count * sizeof(Value)));
    check(cudaMemcpy(words_on_device, words.data(), count * sizeof(Words), cudaMemcpyHostToDevice));
    make_pairs<<<count / threads, threads>>>(words_on_device, count, z_on_device);
    check(cudaGetLastError());
    check(cudaMemcpy(z.data(), z_on_device, 2 * count * sizeof(Value), cudaMemcpyDeviceToHost));
    for (int i = 0; i < count; i++) {
        Value expected[2];
        Method<Words, Value>::pair(words[i], expected);
        assert_memory_equal(&z[2 * i], expected, sizeof expected);
    }
    check(cudaFree(words_on_device));
    check(cudaFree(z_on_device));
}

void values_of_random_words_match(void **)
{
    random_start("values_of_random_words_match");
    compare_with_host<shuf_box_muller_words, float>(32);
    compare_with_host<shuf_box_muller_wide, double>(64);
}

} // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(square_roots_of_floats_are_exact),
        cmocka_unit_test(square_roots_of_doubles_are_exact),
        cmocka_unit_test(values_of_random_words_match),
    };
    return run_device_tests(tests);
}
