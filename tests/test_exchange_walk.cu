/* SPDX-License-Identifier: MIT
 *
 * The kernels of plans for few ranks, with each form of primefold for large n. A plan gets the
 * forms of 64-bit words only from n = 2^31 on. These tests call the kernels with these forms and a
 * smaller n, and compare them with the inline C.
 */
#include "cuda/exchange_walk.cuh"
#include "cuda/fold_forms.cuh"
#include "host/primefold_shape.h"

#include "support/device_tests.cuh"

extern "C" {
#include "support/random.h"
}

#include <algorithm>
#include <numeric>
#include <vector>

namespace
{

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

/* A permutation, its values at all positions, and the ends of the parts of its ranks. */
struct Job {
    shuf__permutation p{};
    Numbers value, ends;

    Job(uint64_t n, uint64_t world, Direction direction)
    {
        p.algorithm = SHUF_ALGORITHM_PRIMEFOLD;
        p.n = n;
        p.seed = random_u64();
        p.epoch = random_below(9);
        shuf_primefold f = shuf_primefold_make(n, p.seed, p.epoch);
        shuf_primefold_make_inverse(&f);
        value.resize(n);
        for (uint64_t i = 0; i < n; i++)
            value[i] = direction == Direction::forward ? shuf_primefold_forward(&f, i)
                                                       : shuf_primefold_inverse(&f, i);
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
    using Word = typename Form::Word;
    const walk::Range<Word> range{static_cast<Word>(job.first(rank)),
                                  static_cast<Word>(job.ends[rank] - job.first(rank))};
    Numbers expected;
    for (const uint64_t x : job.value)
        if (job.has(rank, x))
            expected.push_back(x - job.first(rank));
    Device<Number> list(expected.size());
    Device<uint64_t> total(3);
    total.copy_from({0, 0, 0});
    uint64_t *before = total.memory;
    /* Two launches, as for an n above tuning::walk_positions. */
    const uint64_t half = job.p.n / 2 + random_below(99);
    for (const walk::Positions part :
         {walk::Positions{0, half}, walk::Positions{half, job.p.n - half}}) {
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
    using Word = typename Form::Word;
    const auto world = static_cast<uint32_t>(job.ends.size());
    const uint64_t first = random_below(job.p.n);
    const walk::Positions part{first, random_below(job.p.n - first) + 1};
    walk::Ranges<Word> ranges{{}, world};
    Numbers expected;
    for (uint32_t r = 0; r < world; r++) {
        ranges.range[r] = {static_cast<Word>(job.first(r)),
                           static_cast<Word>(job.ends[r] - job.first(r))};
        for (uint64_t i = 0; i < part.count; i++)
            if (job.has(r, job.value[first + i]))
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

template <typename Of> void check_form(uint64_t n, Direction direction)
{
    for (uint64_t world = 1; world <= tuning::split_ranks; world += 1 + random_below(3)) {
        const Job job(n, world, direction);
        const shuf_primefold_shape shape = shuf__primefold_shape(n);
        const auto f = Of::make(job.p, shape);
        const auto step = make_steps(f, shape.p, walk::lanes).one;
        check_select<uint32_t>(job, f, step, random_below(world));
        check_select<uint64_t>(job, f, step, random_below(world));
        check_split<uint32_t>(job, f, step);
        check_split<uint64_t>(job, f, step);
    }
}

/* The prime is next to the first n, and far from the second, which needs many cycle walks. */
constexpr uint64_t sizes[] = {(1 << 22) - 3, (1 << 21) + 2000};
constexpr int maps = SHUF_PRIMEFOLD_MAPS_LARGE_62;

void double_quotients(void **)
{
    random_start("double_quotients");
    for (const uint64_t n : sizes)
        check_form<FormOf<FoldDouble<maps>>>(n, Direction::forward);
}

void any_prime(void **)
{
    random_start("any_prime");
    for (const uint64_t n : sizes) {
        check_form<FormOf<Fold64<maps>>>(n, Direction::forward);
        check_form<FormOf<Fold64<maps, Direction::inverse>, Direction::inverse>>(
            n, Direction::inverse);
    }
}

void words_of_32_bits(void **)
{
    random_start("words_of_32_bits");
    for (const uint64_t n : sizes) {
        check_form<FormOf<Fold32<maps>>>(n, Direction::forward);
        check_form<FormOf<Fold32<maps, Direction::inverse>, Direction::inverse>>(
            n, Direction::inverse);
    }
}

} // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(double_quotients),
        cmocka_unit_test(any_prime),
        cmocka_unit_test(words_of_32_bits),
    };
    return run_device_tests(tests);
}
