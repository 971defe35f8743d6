/* SPDX-License-Identifier: MIT
 *
 * Parts of the GPU's code, compared with the inline C: square roots, conversions and values of the
 * method of Box and Muller; look-ups of primefold in every form, both widths and directions, and
 * every place in a group of threads; the kernels of plans for few ranks.
 */
#include "cuda/exchange_walk.cuh"
#include "cuda/permute.cuh"
#include "shuf/box_muller.h"
#include "simd/primefold.h"

#include "support/device_tests.cuh"

extern "C" {
#include "support/random.h"
}

#include <algorithm>
#include <numeric>
#include <vector>

namespace
{

/* ---- Box and Muller ---- */

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

/* A function, because nvcc 12 does not compile decltype() in one that launches a kernel. */
template <typename Word> void set_random(Word &word, unsigned bits)
{
    word = static_cast<Word>(random_word(bits));
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
            set_random(w.radius[i], bits);
            set_random(w.angle[i], bits);
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

/* ---- Look-ups ---- */

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

/* ---- Plans: some neighbouring positions, because all of them would take long ---- */

using namespace shuf;
using Numbers = std::vector<uint64_t>;

template <typename T> class Device
{
  public:
    explicit Device(size_t count) : count_(count)
    {
        check(cudaMalloc(&memory, (count ? count : 1) * sizeof(T)));
        check(cudaMemset(memory, 0xee, (count ? count : 1) * sizeof(T)));
    }
    ~Device()
    {
        cudaFree(memory);
    }
    Device(const Device &) = delete;
    Device &operator=(const Device &) = delete;
    void copy_from(const std::vector<T> &values)
    {
        check(cudaMemcpy(memory, values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice));
    }
    std::vector<T> values() const
    {
        std::vector<T> values(count_);
        check(cudaMemcpy(values.data(), memory, count_ * sizeof(T), cudaMemcpyDeviceToHost));
        return values;
    }
    T *memory;

  private:
    size_t count_;
};

/* A permutation, its values at some positions, and the ends of the parts of its ranks. */
struct Job {
    shuf__permutation p{};
    shuf_primefold_shape shape;
    walk::Positions positions;
    Numbers value, ends;

    Job(uint64_t n, uint64_t world, Direction direction)
        : shape(shuf__primefold_shape(n)), value(std::min(n, 100000 + random_below(100000)))
    {
        p.algorithm = SHUF_ALGORITHM_PRIMEFOLD;
        p.n = n;
        p.seed = random_u64();
        p.epoch = random_below(9);
        positions = {random_below(2) ? random_below(n - value.size() + 1) : n - value.size(),
                     value.size()};
        shuf_primefold f = shuf_primefold_make(n, p.seed, p.epoch);
        shuf_primefold_make_inverse(&f);
        for (uint64_t i = 0; i < value.size(); i++) {
            const uint64_t x = positions.first + i;
            value[i] = direction == Direction::forward ? shuf_primefold_forward(&f, x)
                                                       : shuf_primefold_inverse(&f, x);
        }
        for (uint64_t r = 1; r < world; r++)
            ends.push_back(random_below(n));
        ends.push_back(n);
        std::sort(ends.begin(), ends.end());
    }
    uint64_t first(uint64_t rank) const
    {
        return rank ? ends[rank - 1] : 0;
    }
    bool has(uint64_t rank, uint64_t x) const
    {
        return x >= first(rank) && x < ends[rank];
    }
    template <typename Word> walk::Range<Word> range(uint64_t rank) const
    {
        return {static_cast<Word>(first(rank)), static_cast<Word>(ends[rank] - first(rank))};
    }
};

template <typename Number>
void expect(const char *what, const Job &job, const Numbers &expected, const Device<Number> &device)
{
    const std::vector<Number> values = device.values();
    for (size_t i = 0; i < expected.size(); i++)
        if (values[i] != expected[i])
            fail_msg("%s, n %llu, seed %llu, epoch %llu: number %zu is %llu, expected %llu", what,
                     (unsigned long long)job.p.n, (unsigned long long)job.p.seed,
                     (unsigned long long)job.p.epoch, i, (unsigned long long)values[i],
                     (unsigned long long)expected[i]);
}

template <typename Number, typename Form>
void check_select(const Job &job, const Form &f, typename Form::Word step, uint64_t rank)
{
    const auto range = job.range<typename Form::Word>(rank);
    Numbers expected;
    for (const uint64_t x : job.value)
        if (job.has(rank, x))
            expected.push_back(x - job.first(rank));
    Device<Number> list(expected.size());
    Device<uint64_t> total(3);
    total.copy_from({0, 0, 0});
    uint64_t *before = total.memory;
    /* Two launches, as for an n above tuning::walk_positions. */
    const uint64_t begin = job.positions.first, half = 1 + random_below(job.positions.count - 1);
    for (const walk::Positions part : {walk::Positions{begin, half},
                                       walk::Positions{begin + half, job.positions.count - half}}) {
        const unsigned tiles = blocks_for(part.count, walk::select_tile<Number>);
        size_t bytes = 0;
        walk::TileState state;
        walk::TileState::AllocationSize(static_cast<int>(tiles), bytes);
        Device<char> states(bytes);
        check(state.Init(static_cast<int>(tiles), states.memory, bytes));
        walk::begin_tiles<<<blocks_for(tiles, fold_threads), fold_threads>>>(
            state, static_cast<int>(tiles));
        walk::select_range<<<tiles, fold_threads>>>(f, step, part, range, state, before++,
                                                    list.memory);
        check(cudaDeviceSynchronize());
    }
    assert_int_equal(total.values()[2], expected.size());
    expect("order", job, expected, list);
}

template <typename Number, typename Form>
void check_split(const Job &job, const Form &f, typename Form::Word step)
{
    const auto world = static_cast<uint32_t>(job.ends.size());
    const walk::Positions &part = job.positions;
    walk::Ranges<typename Form::Word> ranges{{}, world};
    Numbers expected;
    for (uint32_t r = 0; r < world; r++) {
        ranges.range[r] = job.range<typename Form::Word>(r);
        for (uint64_t i = 0; i < part.count; i++)
            if (job.has(r, job.value[i]))
                expected.push_back(i);
    }
    assert_int_equal(expected.size(), part.count);
    const unsigned tiles = blocks_for(part.count, walk::split_tile);
    Device<uint64_t> counts(uint64_t{tiles} * walk::warps * world);
    Device<Number> lists(part.count);
    walk::count_ranges<<<tiles, fold_threads>>>(f, step, part, ranges, counts.memory);
    Numbers begins = counts.values();
    std::exclusive_scan(begins.begin(), begins.end(), begins.begin(), uint64_t{0});
    counts.copy_from(begins);
    walk::split_ranges<<<tiles, fold_threads>>>(f, step, part, ranges, counts.memory, lists.memory);
    check(cudaDeviceSynchronize());
    expect("places", job, expected, lists);
}

template <Direction direction> void check_size(uint64_t n)
{
    for (uint64_t world = 1; world <= tuning::split_ranks; world += 1 + random_below(3)) {
        const Job job(n, world, direction);
        const cudaError_t e = with_form<direction>(job.shape, [&](auto of) {
            const auto f = of.make(job.p, job.shape);
            const auto step = walk::step_of(f, job.shape);
            const uint64_t rank = random_below(world);
            if (job.ends[rank] - job.first(rank) < uint64_t{1} << 32)
                check_select<uint32_t>(job, f, step, rank);
            check_select<uint64_t>(job, f, step, rank);
            check_split<uint32_t>(job, f, step);
            check_split<uint64_t>(job, f, step);
            return cudaGetLastError();
        });
        check(e);
    }
}

/* Each form, the bounds between the forms, and sizes next to their prime and far from it. */
constexpr uint64_t sizes[] = {257,
                              5000,
                              65521,
                              100003,
                              (uint64_t{1} << 21) + 1,
                              (uint64_t{1} << 21) + 2000,
                              uint64_t{1} << 30,
                              (uint64_t{1} << 30) + 9999,
                              (uint64_t{1} << 31) - 10000000,
                              (uint64_t{1} << 31) - 1,
                              uint64_t{1} << 31,
                              uint64_t{3000000019},
                              (uint64_t{1} << 32) - (uint64_t{1} << 24),
                              (uint64_t{1} << 32) - (uint64_t{1} << 23),
                              (uint64_t{1} << 32) - 1,
                              uint64_t{1} << 32,
                              (uint64_t{1} << 33) + 77,
                              (uint64_t{1} << 38) - (uint64_t{1} << 33),
                              (uint64_t{1} << 38) + 1,
                              uint64_t{1} << 62};

void forward_walks_match(void **)
{
    random_start("forward");
    for (const uint64_t n : sizes)
        check_size<Direction::forward>(n);
}

void inverse_walks_match(void **)
{
    random_start("inverse");
    for (const uint64_t n : sizes)
        check_size<Direction::inverse>(n);
}

} // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(square_roots_of_floats_are_exact),
        cmocka_unit_test(square_roots_of_doubles_are_exact),
        cmocka_unit_test(values_of_random_words_match),
        cmocka_unit_test(every_size_matches),
        cmocka_unit_test(every_count_matches),
        cmocka_unit_test(many_look_ups_match),
        cmocka_unit_test(every_small_size_matches),
        cmocka_unit_test(forward_walks_match),
        cmocka_unit_test(inverse_walks_match),
    };
    return run_device_tests(tests);
}
